//! The marks that models and their chat templates write around reasoning and tool calls.

/// The part that a mark begins or ends.
#[derive(Clone, Copy)]
pub(super) enum Mark {
    /// Reasoning up to the given mark.
    Reasoning(&'static str),
    /// The end of reasoning whose beginning the chat template wrote into the prompt. Each end of [`Mark::Reasoning`] is
    /// one.
    ReasoningEnd,
    /// A tool call up to the given mark or the end of the answer.
    Call(&'static str),
    /// The channel of a harmony message, whose body follows `<|message|>`.
    Channel,
    Author,
    /// A mark of [`TEMPLATE`].
    Template,
    /// An escaped character, as prompts write it.
    Escape(char),
}

pub(super) const MARKS: [(&str, Mark); 30] = [
    ("<think>", Mark::Reasoning("</think>")),
    ("<thinking>", Mark::Reasoning("</thinking>")),
    ("<thought>", Mark::Reasoning("</thought>")),
    ("<reasoning>", Mark::Reasoning("</reasoning>")),
    ("<thoughts>", Mark::Reasoning("</thoughts>")),
    ("<reflection>", Mark::Reasoning("</reflection>")),
    ("<scratchpad>", Mark::Reasoning("</scratchpad>")),
    ("<antThinking>", Mark::Reasoning("</antThinking>")),
    ("<seed:think>", Mark::Reasoning("</seed:think>")),
    ("[THINK]", Mark::Reasoning("[/THINK]")),
    ("◁think▷", Mark::Reasoning("◁/think▷")),
    ("<|START_THINKING|>", Mark::Reasoning("<|END_THINKING|>")),
    ("<|begin_of_thought|>", Mark::Reasoning("<|end_of_thought|>")),
    ("<|channel>thought", Mark::Reasoning("<channel|>")),
    ("<tool_call>", Mark::Call("</tool_call>")),
    ("<function_call>", Mark::Call("</function_call>")),
    ("<function=", Mark::Call("</function>")),
    ("[TOOL_CALLS]", Mark::Call("</s>")),
    ("<TOOLCALL>", Mark::Call("</TOOLCALL>")),
    ("<seed:tool_call>", Mark::Call("</seed:tool_call>")),
    ("<|START_ACTION|>", Mark::Call("<|END_ACTION|>")),
    ("<|python_tag|>", Mark::Call("<|eom_id|>")),
    ("<|python_start|>", Mark::Call("<|python_end|>")),
    ("<|tool_call|>", Mark::Call("<|/tool_call|>")),
    ("<|tool_call_start|>", Mark::Call("<|tool_call_end|>")),
    ("<|tool_call_begin|>", Mark::Call("<|tool_call_end|>")),
    ("<｜tool▁call▁begin｜>", Mark::Call("<｜tool▁call▁end｜>")),
    ("<invoke name=\"", Mark::Call("</invoke>")),
    ("<|channel|>", Mark::Channel),
    ("<|start|>", Mark::Author),
];

/// Marks that carry no text.
pub(super) const TEMPLATE: &str = "<|message|> <|end|> <|return|> <|call|> <|im_end|> <|eot_id|> <|endoftext|> \
     <|end_of_text|> <|im_start|>assistant <|assistant|> <|eom_id|> <end_of_turn> \
     <｜end▁of▁sentence｜> <|START_RESPONSE|> <|END_RESPONSE|> <|END_OF_TURN_TOKEN|> \
     <|begin_of_box|> <|end_of_box|> <|tool_calls_section_begin|> <|tool_calls_section_end|> \
     <｜tool▁calls▁begin｜> <｜tool▁calls▁end｜> <function_calls> </function_calls> \
     <minimax:tool_call> </minimax:tool_call>";

pub(super) const MESSAGE_ENDS: [&str; 5] =
    ["<|end|>", "<|return|>", "<|call|>", "<|start|>", "<|channel|>"];

/// What stands before and after a mark that is only named.
pub(super) const QUOTES: [char; 6] = ['`', '"', '\'', '“', '„', '«'];
pub(super) const QUOTE_ENDS: [char; 5] = ['`', '"', '\'', '”', '»'];

/// An upper bound for the bytes of a mark.
pub(super) const LONGEST: usize = 40;

/// Beginnings of reasoning whose first mark is missing, in small letters.
pub(super) const THOUGHTS: [&str; 16] = [
    "okay",
    "ok,",
    "alright",
    "hmm",
    "let me",
    "let's",
    "first, i",
    "we need",
    "the user",
    "i need to",
    "i should",
    "so,",
    "so the",
    "wait",
    "thinking",
    "analysis",
];
