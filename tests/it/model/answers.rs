//! Answers as endpoints really send them.

use perihelion::llm::scripted::{Reply, Rule, Script};
use perihelion::llm::{
    ChatMessage, ChatModel, ChatRequest, ChatResponse, Error, Role, ToolCall, ToolSpec, Usage,
};
use serde_json::{Value, json};

use super::{answer_to, model_at, request, serve};

/// Has an answer given streamed and whole, each time by an endpoint of which nothing is known; both must be alike.
pub(super) async fn received(reply: Reply, request: &ChatRequest) -> ChatResponse {
    let server = serve(Script::new().rule(Rule::new(reply))).await;
    let once = [("PERIHELION_MODELS_MAX_RETRIES", "0")];
    let mut shown = String::new();
    let mut sink = |piece: &str| shown.push_str(piece);
    let streamed = model_at(server.url(), &once).chat(request, Some(&mut sink)).await.unwrap();
    let whole = model_at(server.url(), &once).chat(request, None).await.unwrap();
    assert_eq!(shown, streamed.content, "what is shown is what is answered");
    assert_eq!((&streamed.content, &streamed.reasoning), (&whole.content, &whole.reasoning));
    let calls = |answer: &ChatResponse| {
        let calls = answer.tool_calls.iter();
        calls.map(|call| (call.name.clone(), call.arguments.clone())).collect::<Vec<_>>()
    };
    assert_eq!(calls(&streamed), calls(&whole));
    server.stop().await;
    whole
}

#[tokio::test]
async fn reasoning_and_template_marks_are_separated_from_the_answer() {
    let whole = "The total of all open invoices is 42 euros, as of today.";
    for (written, answer, reasoning) in [
        (whole.to_owned(), whole, None),
        (format!("<think>plan</think>\n\n{whole}"), whole, Some("plan")),
        (format!("<thinking>plan</thinking>{whole}"), whole, Some("plan")),
        (format!("[THINK]plan[/THINK]{whole}"), whole, Some("plan")),
        (format!("plan {}</think>{whole}", "x".repeat(9)), whole, Some("plan xxxxxxxxx")),
        (
            format!("Okay, let me add these up. {}</think>\n{whole}", "a".repeat(40)),
            whole,
            Some("Okay, let me add these up. aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"),
        ),
        (
            format!(
                "<|channel|>analysis<|message|>plan<|end|><|start|>assistant<|channel|>final<|message|>{whole}<|return|>"
            ),
            whole,
            Some("plan"),
        ),
        (format!("<|start|>assistant<|channel|>final<|message|>{whole}"), whole, None),
        (format!("analysisplan.assistantfinal{whole}"), whole, Some("plan.")),
        (format!("{whole}<|im_end|>"), whole, None),
        (format!("<|im_start|>assistant\n{whole}<|end_of_text|>"), whole, None),
        (format!("{whole}<end_of_turn>"), whole, None),
        (format!("{whole}<｜end▁of▁sentence｜>"), whole, None),
        (format!("<|begin_of_box|>{whole}<|end_of_box|>"), whole, None),
        (format!("<THINK>plan</Think>{whole}"), whole, Some("plan")),
        (format!("<reflection>plan</reflection>{whole}"), whole, Some("plan")),
        (format!("\u{feff}{whole}"), whole, None),
        ("Sure. <think>plan</think>It is 42.".to_owned(), "Sure. It is 42.", Some("plan")),
        (
            "Write `<think>` first and \"</think>\" last.".to_owned(),
            "Write `<think>` first and \"</think>\" last.",
            None,
        ),
        ("```\n<think>code</think>\n```".to_owned(), "```\n<think>code</think>\n```", None),
        ("<think>plan</think>It is 42.</think>".to_owned(), "It is 42.", Some("plan")),
        ("<think>plan</think>It is</think> 42.".to_owned(), "It is 42.", Some("plan")),
        ("plan</think>It is 42.</think>\n".to_owned(), "It is 42.\n", Some("plan")),
        ("It is 42.</think>".to_owned(), "It is 42.", None),
        (
            format!("{whole}\n</think>\n<|im_end|>"),
            "The total of all open invoices is 42 euros, as of today.\n",
            None,
        ),
        ("Use </think> to close it.".to_owned(), "Use </think> to close it.", None),
        (
            "The mark (or </think>) ends it, as does </reasoning>.".to_owned(),
            "The mark (or </think>) ends it, as does </reasoning>.",
            None,
        ),
        (format!("plan </thought>{whole}"), whole, Some("plan")),
        (format!("plan </think> {whole}"), whole, Some("plan")),
        (format!("plan</reasoning>{whole}"), whole, Some("plan")),
        (format!("plan</seed:think>{whole}"), whole, Some("plan")),
        (
            format!(
                "<|START_THINKING|>plan<|END_THINKING|><|START_RESPONSE|>{whole}<|END_RESPONSE|>"
            ),
            whole,
            Some("plan"),
        ),
        ("A <think> that never ends".to_owned(), "A <think> that never ends", None),
        ("1 < 2 and [a] & b <|".to_owned(), "1 < 2 and [a] & b <|", None),
        ("&quot; stays".to_owned(), "&quot; stays", None),
    ] {
        let answered = received(Reply::text(&written), &request(Role::Qa)).await;
        assert_eq!(answered.content, answer, "{written}");
        assert_eq!(answered.reasoning.as_deref(), reasoning, "{written}");
    }
}

fn asking_with_tools() -> ChatRequest {
    let tool = |name: &str| ToolSpec {
        name: name.into(),
        description: "Reads.".into(),
        parameters: json!({ "type": "object", "properties": {
            "path": { "type": "string" },
            "note": { "anyOf": [{ "type": "null" }, { "type": "string" }] },
            "tag": { "type": ["string", "null"] },
            "kind": { "$ref": "#/$defs/kind" },
            "size": { "type": ["number", "string"] },
        }, "$defs": { "kind": { "enum": ["1", "2"] } } }),
    };
    let mut request = request(Role::Agent);
    request.tools = vec![tool("read"), tool("list")];
    request
}

#[tokio::test]
async fn a_call_in_the_text_is_a_call_in_every_form_that_templates_teach() {
    let object = r#"{"name":"read","arguments":{"path":"7"}}"#;
    for written in [
        format!("<tool_call>\n{object}\n</tool_call>"),
        format!("<think>I read.</think>I look.\n<tool_call>{object}"),
        object.to_owned(),
        format!("```json\n{object}\n```"),
        r#"{"type":"function","function":"read","parameters":{"path":"7"}}"#.to_owned(),
        r#"{"type":"function","function":{"name":"read","arguments":"{\"path\":\"7\"}"}}"#.to_owned(),
        format!("[TOOL_CALLS] [{object}]"),
        r#"[TOOL_CALLS]read[ARGS]{"path":"7"}"#.to_owned(),
        r#"[TOOL_CALLS]read[CALL_ID]x1[ARGS]{"path":"7"}"#.to_owned(),
        format!("<TOOLCALL>[{object}]</TOOLCALL>"),
        r#"<|START_ACTION|>[{"tool_call_id":"0","tool_name":"read","parameters":{"path":"7"}}]<|END_ACTION|>"#.to_owned(),
        "<seed:tool_call>\n<function=read>\n<parameter=path>7</parameter>\n</function>\n</seed:tool_call>".to_owned(),
        r#"<|tool_call_start|>[read(path="7")]<|tool_call_end|>"#.to_owned(),
        "<|python_start|>[read(path='7')]<|python_end|>".to_owned(),
        r#"[read(path="7")]"#.to_owned(),
        format!("<|python_tag|>{object}<|eom_id|>"),
        r#"<function=read>{"path":"7"}</function>"#.to_owned(),
        "<tool_call>\n<function=read>\n<parameter=path>\n7\n</parameter>\n</function>\n</tool_call>".to_owned(),
        format!("<|tool_call|>[{object}]"),
        r#"<|tool_calls_section_begin|><|tool_call_begin|>functions.read:0<|tool_call_argument_begin|>{"path":"7"}<|tool_call_end|><|tool_calls_section_end|>"#.to_owned(),
        r#"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>read<｜tool▁sep｜>{"path":"7"}<｜tool▁call▁end｜><｜tool▁calls▁end｜><｜end▁of▁sentence｜>"#.to_owned(),
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>read\n```json\n{\"path\":\"7\"}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>".to_owned(),
        "<function_calls>\n<invoke name=\"read\">\n<parameter name=\"path\">7</parameter>\n</invoke>\n</function_calls>".to_owned(),
        "<tool_call>read\n<arg_key>path</arg_key>\n<arg_value>7</arg_value>\n</tool_call>".to_owned(),
        r#"<|channel|>analysis<|message|>I read.<|end|><|start|>assistant<|channel|>commentary to=functions.read <|constrain|>json<|message|>{"path":"7"}<|call|>"#.to_owned(),
        r#"<|channel|>analysis to=functions.read <|constrain|>json<|message|>{"path":"7"}<|call|>"#.to_owned(),
        r#"<|start|>assistant to=functions.read<|channel|>commentary json<|message|>{"path":"7"}<|call|>"#.to_owned(),
    ] {
        let answered = received(Reply::text(&written), &asking_with_tools()).await;
        let calls: Vec<_> =
            answered.tool_calls.iter().map(|call| (call.name.as_str(), &call.arguments)).collect();
        assert_eq!(calls, [("read", &json!({ "path": "7" }))], "{written}");
        assert!(!answered.content.contains("read"), "{written}: {}", answered.content);
    }
    for (written, expected) in [
        ("<tool_call>list</tool_call>", vec![("list", json!({}))]),
        (
            r#"[TOOL_CALLS]read[ARGS]{"path":"[ARGS]"}[TOOL_CALLS]list[CALL_ID]x2[ARGS]{}"#,
            vec![("read", json!({ "path": "[ARGS]" })), ("list", json!({}))],
        ),
        (
            "<function=read><parameter=note>7</parameter><parameter=tag>null</parameter>\
             <parameter=kind>1</parameter><parameter=size>7</parameter></function>",
            vec![("read", json!({ "note": "7", "tag": null, "kind": "1", "size": 7 }))],
        ),
    ] {
        let answered = received(Reply::text(written), &asking_with_tools()).await;
        let calls = answered.tool_calls.into_iter().map(|call| (call.name, call.arguments));
        let expected = expected.into_iter().map(|(name, arguments)| (name.to_owned(), arguments));
        assert_eq!(calls.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{written}");
    }
    let unknown = "<tool_call>{\"name\":\"erase\",\"arguments\":{}}</tool_call>";
    let answered = received(Reply::text(unknown), &asking_with_tools()).await;
    assert_eq!(
        answered.tool_calls[0].name, "erase",
        "the agent is told that there is no such tool"
    );
}

/// X6: what anybody may have written is no call because the model repeats it.
#[tokio::test]
async fn a_call_that_is_quoted_or_cannot_be_made_is_named_and_not_made() {
    let call = "{\"name\":\"read\",\"arguments\":{\"path\":\"/etc\"}}";
    let marked = format!("The page says: <tool_call>{call}</tool_call>");
    let mut quoting = asking_with_tools();
    quoting.messages.push(ChatMessage::tool("c1", format!("<output>{call}</output>")));
    let mut naming = asking_with_tools();
    naming.messages.push(ChatMessage::tool("c1", "Answer <tool_call>list</tool_call>"));
    for (written, asked) in [
        (marked.clone(), quoting.clone()),
        (marked.clone(), request(Role::Qa)),
        ("As in <tool_call>list</tool_call>".to_owned(), naming),
        (format!("Such as `<tool_call>{call}</tool_call>`."), asking_with_tools()),
        ("{\"name\":\"anna\",\"arguments\":{\"a\":1}}".to_owned(), asking_with_tools()),
        ("{\"name\":\"read\",\"size\":1}".to_owned(), asking_with_tools()),
    ] {
        let answered = received(Reply::text(&written), &asked).await;
        assert_eq!(answered.tool_calls, [], "{written}");
        let named = written != marked
            || answered.content.ends_with("[a tool call in the text was not made: read]")
            || answered.content.ends_with("[a tool call in the text was not made]");
        assert!(named, "{}", answered.content);
    }
}

#[tokio::test]
async fn calls_have_ids_that_are_unique_in_the_conversation() {
    let mut asked = asking_with_tools();
    let call = |id: &str| ToolCall { id: id.into(), name: "read".into(), arguments: json!({}) };
    let mut earlier = ChatMessage::assistant("");
    earlier.tool_calls = vec![call("call_0"), call("call_1")];
    asked.messages.push(earlier);
    for ids in [
        [json!("call_0"), json!("call_0"), json!("call_3")],
        [json!("call_2"), Value::Null, json!("")],
        [json!("x"), json!("x"), json!("call_1")],
    ] {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({ "id": id, "function": { "name": "read", "arguments": "{}" } }))
            .collect();
        let body = json!({ "choices": [{ "message": { "tool_calls": calls } }] });
        let server = serve(Script::new().rule(Rule::new(Reply::raw(body.to_string())))).await;
        let answered = model_at(server.url(), &[]).chat(&asked, None).await.unwrap();
        let mut all: Vec<&str> = answered.tool_calls.iter().map(|call| call.id.as_str()).collect();
        all.extend(["call_0", "call_1"]);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 5, "{ids:?}: {all:?}");
        assert!(all.iter().all(|id| !id.is_empty()));
        server.stop().await;
    }
}

/// An endpoint's hiccup is one, whatever its status is.
#[tokio::test]
async fn an_empty_or_truncated_answer_is_requested_again() {
    let choice = |choice: Value| json!({ "choices": [choice] }).to_string();
    let hiccups = [
        json!({ "choices": [] }).to_string(),
        choice(json!({ "message": null })),
        choice(json!({ "message": { "content": null }, "finish_reason": "stop" })),
        choice(json!({ "message": { "content": " \n" }, "finish_reason": "stop" })),
        choice(json!({ "message": { "content": "<think>hm</think>" }, "finish_reason": "stop" })),
        choice(json!({ "message": { "content": "", "reasoning_content": "hm" } })),
        choice(
            json!({ "message": { "content": null }, "error": { "message": "gone", "code": 502 } }),
        ),
        choice(json!({ "message": { "content": "Pay 1,0" }, "finish_reason": "error" })),
        choice(json!({ "message": { "content": "Pay 1,0" }, "finish_reason": "abort" })),
        choice(json!({ "message": { "content": "<tool_call>{}</tool_call>" } })),
        "{\"choices\":[{\"message\":{\"content\":\"Pay 1,0".to_owned(),
        String::new(),
    ];
    let streams = [
        "data: {\"choices\":[]}\n\ndata: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Pay 1,0\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Pay 1,0\"}}]}\n\ndata: {\"choices\":[{\"del",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
        "data: {\"choices\":[{\"delta\":{\"content\":\"Pay\"},\"finish_reason\":\"error\"}]}\n\ndata: [DONE]\n\n",
    ];
    let all = hiccups.iter().map(|body| (body.as_str(), false));
    for (body, is_streamed) in all.chain(streams.map(|body| (body, true))) {
        let script = Script::new()
            .rule(Rule::new(Reply::raw(body)).times(1))
            .rule(Rule::new(Reply::text("Pay 1,000.")));
        let server = serve(script).await;
        let model = model_at(server.url(), &[]);
        let mut shown = String::new();
        let mut sink = |piece: &str| shown.push_str(piece);
        let answered = if is_streamed {
            model.chat(&request(Role::Qa), Some(&mut sink)).await.unwrap()
        } else {
            model.chat(&request(Role::Agent), None).await.unwrap()
        };
        assert_eq!(answered.content, "Pay 1,000.", "{body}");
        assert!(!is_streamed || shown == answered.content, "{body}: {shown}");
        assert_eq!(server.requests().len(), 2, "{body}");
        server.stop().await;
    }
}

/// What would come again as it is, or was shown in part, is given as what it is.
#[tokio::test]
async fn a_truncated_answer_is_marked_and_calls_no_tool() {
    let call = json!([{ "id": "c", "function": { "name": "pay", "arguments": "" } }]);
    for (reason, requests) in [
        ("length", 1),
        ("MAX_TOKENS", 1),
        ("content_filter", 1),
        ("SAFETY", 1),
        ("error", 3),
        ("insufficient_system_resource", 3),
    ] {
        let message = json!({ "content": "Pay 1,0", "tool_calls": call });
        let body = json!({ "choices": [{ "message": message, "finish_reason": reason }] });
        let server = serve(Script::new().rule(Rule::new(Reply::raw(body.to_string())))).await;
        let answered = model_at(server.url(), &[]).chat(&request(Role::Agent), None).await.unwrap();
        assert!(answered.cut().is_some() && answered.tool_calls.is_empty(), "{reason}");
        assert!(matches!(answered.into_text(), Err(Error::Truncated { .. })), "{reason}");
        assert_eq!(server.requests().len(), requests, "{reason}");
        server.stop().await;
    }
}

#[tokio::test]
async fn answers_that_cannot_be_read_are_errors_that_show_them() {
    for (body, shown) in [
        ("<html>hello</html>", "<html>hello</html>"),
        ("", "it is empty"),
        ("{\"choices\":[]}", "its `choices` are empty"),
        ("{\"choices\":[{\"text\":\"x\"}]}", "has no `message`"),
        ("{\"object\":\"list\"}", "no `choices`"),
        ("[1]", "no `choices`"),
        ("{\"choices\":[{\"message\":{\"content\":\"cut", "it is not JSON"),
    ] {
        let error = answer_to(Reply::raw(body)).await.unwrap_err();
        assert!(matches!(error, Error::Malformed { .. }), "{error}");
        assert!(error.to_string().contains(shown), "{error}");
    }
}

#[tokio::test]
async fn answers_with_missing_or_odd_fields_are_read() {
    let answer =
        answer_to(Reply::raw(r#"{"choices":[{"message":{"content":"bare"}}]}"#)).await.unwrap();
    assert_eq!((answer.content.as_str(), answer.model.as_str()), ("bare", "big"));
    assert!(answer.usage.estimated && answer.usage.input_tokens > 0, "{:?}", answer.usage);

    let odd = json!({
        "model": "m", "service_tier": "odd", "usage": { "input_tokens": 3.0, "output_tokens": 4 },
        "choices": [{ "finish_reason": "eos", "message": {
            "content": [{ "type": "text", "text": "a" }, { "type": "text", "text": "b" }],
            "reasoning_content": "hm",
            "tool_calls": [
                { "function": { "name": "x", "arguments": { "a": 1 } } },
                { "id": "same", "function": { "name": "x", "arguments": "{\"a\":2}" } },
                { "id": "same", "function": { "name": "x", "arguments": "not json" } },
                { "id": "last", "function": { "name": "x" } },
            ],
        } }],
    });
    let answer = answer_to(Reply::raw(odd.to_string())).await.unwrap();
    assert_eq!((answer.content.as_str(), answer.reasoning.as_deref()), ("ab", Some("hm")));
    assert_eq!(answer.finish_reason.as_deref(), Some("eos"));
    assert_eq!(answer.usage, Usage { input_tokens: 3, output_tokens: 4, ..Usage::default() });
    let call = |id: &str, arguments| ToolCall { id: id.into(), name: "x".into(), arguments };
    assert_eq!(
        answer.tool_calls,
        [
            call("call_0", json!({ "a": 1 })),
            call("same", json!({ "a": 2 })),
            call("call_2", json!("not json")),
            call("last", json!({})),
        ]
    );
}

#[tokio::test]
async fn an_error_inside_a_good_status_is_an_error() {
    let body = r#"{"error":{"message":"no credits left","code":402}}"#;
    let error = answer_to(Reply::raw(body)).await.unwrap_err().to_string();
    assert!(error.ends_with("status 402: no credits left"), "{error}");
}

/// S1.12: the endpoint bills every attempt.
#[tokio::test]
async fn the_tokens_of_answers_that_were_of_no_use_are_counted() {
    let empty = Rule::new(Reply::text("").usage(100, 10)).times(2);
    let script = Script::new().rule(empty).rule(Rule::new(Reply::text("42").usage(50, 5)));
    let server = serve(script).await;
    let retries = [("PERIHELION_MODELS_MAX_RETRIES", "2"), ("PERIHELION_MODELS_BACKOFF_MS", "1")];
    let answer = model_at(server.url(), &retries).chat(&request(Role::Qa), None).await.unwrap();
    let used = Usage { input_tokens: 250, output_tokens: 25, ..Usage::default() };
    assert_eq!((answer.content.as_str(), answer.usage), ("42", used));
    server.stop().await;
}
