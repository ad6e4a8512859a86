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
    /// A mark that carries no text.
    Template,
    /// An escaped character, as prompts write it.
    Escape(char),
}

pub(super) const MARKS: [(&str, Mark); 56] = [
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
    ("<|message|>", Mark::Template),
    ("<|end|>", Mark::Template),
    ("<|return|>", Mark::Template),
    ("<|call|>", Mark::Template),
    ("<|im_end|>", Mark::Template),
    ("<|eot_id|>", Mark::Template),
    ("<|endoftext|>", Mark::Template),
    ("<|end_of_text|>", Mark::Template),
    ("<|im_start|>assistant", Mark::Template),
    ("<|assistant|>", Mark::Template),
    ("<|eom_id|>", Mark::Template),
    ("<end_of_turn>", Mark::Template),
    ("<｜end▁of▁sentence｜>", Mark::Template),
    ("<|START_RESPONSE|>", Mark::Template),
    ("<|END_RESPONSE|>", Mark::Template),
    ("<|END_OF_TURN_TOKEN|>", Mark::Template),
    ("<|begin_of_box|>", Mark::Template),
    ("<|end_of_box|>", Mark::Template),
    ("<|tool_calls_section_begin|>", Mark::Template),
    ("<|tool_calls_section_end|>", Mark::Template),
    ("<｜tool▁calls▁begin｜>", Mark::Template),
    ("<｜tool▁calls▁end｜>", Mark::Template),
    ("<function_calls>", Mark::Template),
    ("</function_calls>", Mark::Template),
    ("<minimax:tool_call>", Mark::Template),
    ("</minimax:tool_call>", Mark::Template),
];

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
