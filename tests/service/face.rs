//! The faces of the service, each as its clients use it: a thread is begun, continued and answered by any.

use serde_json::{Value, json};
use uuid::Uuid;

use super::saying;
use super::served::Served;

/// A face of the service, or the command line over the same database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    AgentServer,
    Protocol,
    Responses,
    Chat,
    A2a,
    Mcp,
    CommandLine,
}

pub const ALL: [Face; 7] = [
    Face::AgentServer,
    Face::Protocol,
    Face::Responses,
    Face::Chat,
    Face::A2a,
    Face::Mcp,
    Face::CommandLine,
];

/// What a person says to questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// To a clarification.
    Words(&'static str),
    Approve,
    /// To several requests: the first is approved, the others are denied.
    ApproveFirst,
}

/// A thread, and the task that it is for other agents where one of them began it.
#[derive(Clone, Debug)]
pub struct Begun {
    pub thread: String,
    pub task: Option<String>,
}

impl Face {
    /// Begins a thread with a message; returns what its client was told in words, too.
    pub async fn begin(self, served: &Served, text: &str) -> (Begun, String) {
        let (reply, thread, words) = match self {
            Self::AgentServer => {
                let thread = served.thread().await;
                let run = format!("/threads/{thread}/runs/wait");
                let (_, reply) = served.post(&run, &saying(text)).await;
                (reply, json!(thread), String::new())
            }
            Self::Protocol => {
                let thread = Uuid::now_v7();
                let message = json!({ "messages": [{ "role": "human", "content": text }] });
                let start = json!({ "assistant_id": "swarm", "input": message });
                let reply = command(served, &thread.to_string(), "run.start", start).await;
                let run = reply["result"]["run_id"].as_str().unwrap();
                served.get(&format!("/threads/{thread}/runs/{run}/join")).await;
                (reply, json!(thread), String::new())
            }
            Self::CommandLine => {
                let reply = served.asked(&["run", text, "--json", "-q"]).await;
                (reply.clone(), reply["thread_id"].clone(), String::new())
            }
            _ => {
                let (reply, words) = self.say(served, None, text).await;
                let places = ["/metadata/thread_id", "/task/contextId", "/thread_id"];
                let thread = places.iter().find_map(|place| reply.pointer(place)).cloned();
                (reply.clone(), thread.unwrap_or_else(|| panic!("{self:?}: {reply}")), words)
            }
        };
        let task = reply["task"]["id"].as_str().map(str::to_owned);
        (Begun { thread: thread.as_str().unwrap().to_owned(), task }, words)
    }

    /// Sends a further message to a thread.
    pub async fn continue_with(self, served: &Served, thread: &str, text: &str) {
        match self {
            Self::AgentServer => {
                served.post(&format!("/threads/{thread}/runs/wait"), &saying(text)).await;
            }
            Self::Protocol => {
                let message = json!({ "role": "human", "content": text });
                command(served, thread, "input.inject", json!({ "message": message })).await;
            }
            Self::CommandLine => {
                served.asked(&["resume", thread, "--message", text, "--json", "-q"]).await;
            }
            _ => {
                self.say(served, Some(thread), text).await;
            }
        }
    }

    /// Answers what a thread asks, in the way of the face's clients.
    pub async fn answer(self, served: &Served, thread: &str, answer: Answer) {
        let (_, state) = served.get(&format!("/threads/{thread}/state")).await;
        let open = state["interrupts"].as_array().unwrap();
        let ids: Vec<&str> = open.iter().map(|one| one["id"].as_str().unwrap()).collect();
        let approves = |index: usize| answer == Answer::Approve || index == 0;
        let decide = |index: usize| {
            let kind = if approves(index) { "approve" } else { "reject" };
            json!({ "decisions": [{ "type": kind }] })
        };
        let text = match (answer, ids.len()) {
            (Answer::Words(text), _) => return self.continue_with(served, thread, text).await,
            (Answer::Approve, 1) => "approve".to_owned(),
            (Answer::Approve, _) => "approve all".to_owned(),
            (Answer::ApproveFirst, _) => {
                let word = |index| if approves(index) { "approve" } else { "deny" };
                let lines = ids.iter().enumerate().map(|(at, id)| format!("{id}: {}", word(at)));
                lines.collect::<Vec<_>>().join("\n")
            }
        };
        match self {
            Self::AgentServer => {
                let each = ids.iter().enumerate().map(|(at, id)| ((*id).to_owned(), decide(at)));
                let resume = Value::Object(each.collect());
                let body = json!({ "assistant_id": "swarm", "command": { "resume": resume } });
                served.post(&format!("/threads/{thread}/runs/wait"), &body).await;
            }
            Self::Protocol => {
                let each = ids.iter().enumerate();
                let each =
                    each.map(|(at, id)| json!({ "interrupt_id": id, "response": decide(at) }));
                let responses = json!({ "responses": each.collect::<Vec<_>>() });
                let reply = command(served, thread, "input.respond", responses).await;
                assert_eq!(reply["type"], "success", "{reply}");
            }
            Self::CommandLine => {
                for (at, id) in ids.iter().enumerate() {
                    let word = if approves(at) { "--approve" } else { "--deny" };
                    let args = ["resume", thread, "--interrupt", id, word, "--json", "-q"];
                    served.asked(&args).await;
                }
            }
            _ => {
                self.say(served, Some(thread), &text).await;
            }
        }
    }

    /// Says something by a face that knows messages alone; returns its answer and the words in it.
    async fn say(self, served: &Served, thread: Option<&str>, text: &str) -> (Value, String) {
        let (code, reply, words) = self.sent(served, thread, text).await;
        assert_eq!(code, 200, "{self:?}: {reply}");
        (reply, words.unwrap_or_default())
    }

    /// Sends a message by a face that knows messages alone.
    pub async fn sent(
        self,
        served: &Served,
        thread: Option<&str>,
        text: &str,
    ) -> (u16, Value, Option<String>) {
        let metadata = thread.map(|thread| json!({ "thread_id": thread }));
        let (path, body, words) = match self {
            Self::Responses => (
                "/v1/responses",
                json!({ "model": "swarm", "input": text, "metadata": metadata }),
                "/output/0/content/0/text",
            ),
            Self::Chat => {
                let messages = json!([{ "role": "user", "content": text }]);
                let body = json!({ "model": "swarm", "messages": messages, "metadata": metadata });
                ("/v1/chat/completions", body, "/choices/0/message/content")
            }
            Self::A2a => {
                let message = json!({
                    "messageId": Uuid::now_v7(), "role": "ROLE_USER", "parts": [{ "text": text }], "contextId": thread,
                });
                let words = "/task/status/message/parts/0/text";
                ("/a2a/message:send", json!({ "message": message }), words)
            }
            Self::Mcp => {
                let mut arguments = json!({ "question": text });
                if let Some(thread) = thread {
                    arguments["thread_id"] = json!(thread);
                }
                let reply = served.tool("swarm", arguments).await;
                let code = if reply["isError"] == true { 400 } else { 200 };
                let words = reply["content"][0]["text"].as_str().map(str::to_owned);
                return (code, reply["structuredContent"].clone(), words);
            }
            other => panic!("{other:?} has commands of its own"),
        };
        let (code, reply) = served.post(path, &body).await;
        let words = reply.pointer(words).and_then(Value::as_str).map(str::to_owned);
        (code, reply, words)
    }
}

/// Sends a command of the thread protocol.
async fn command(served: &Served, thread: &str, method: &str, params: Value) -> Value {
    let body = json!({ "id": 1, "method": method, "params": params });
    let (code, reply) = served.post(&format!("/threads/{thread}/commands"), &body).await;
    assert_eq!(code, 200, "{reply}");
    reply
}

/// Keeps a team of two agents.
pub async fn keep_team(served: &Served) {
    let member = |name: &str, server: &str| json!({ "name": name, "role": name, "goal": "Notes facts.", "servers": [server] });
    let design = json!({
        "name": "keepers", "description": "Keeps notes.",
        "agents": [member("keeper", "notes"), member("diarist", "diary")],
    });
    let (code, made) = served.post("/v1/teams", &json!({ "design": design })).await;
    assert_eq!(code, 200, "{made}");
}

impl Served {
    /// Runs the program, which answers or asks, and returns what it says of the run.
    async fn asked(&self, args: &[&str]) -> Value {
        let ended = self.command(args).output().await.unwrap();
        // 3: a person is asked something.
        assert!(matches!(ended.status.code(), Some(0 | 3)), "{ended:?}");
        serde_json::from_slice(&ended.stdout).unwrap()
    }

    /// Sends a request of MCP and returns its result, or its error.
    pub async fn mcp(&self, method: &str, params: Value) -> Value {
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let asked = self.http.post(format!("{}/mcp", self.url));
        let asked = asked.header("accept", "application/json, text/event-stream");
        let asked = asked.header("content-type", "application/json").body(body.to_string());
        let text = asked.send().await.unwrap().text().await.unwrap();
        let json = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap_or(&text);
        let reply: Value = serde_json::from_str(json).unwrap_or_else(|_| panic!("{text}"));
        reply.get("result").or_else(|| reply.get("error")).cloned().unwrap_or_default()
    }

    /// Calls a tool of the service's own MCP server.
    pub async fn tool(&self, name: &str, arguments: Value) -> Value {
        self.mcp("tools/call", json!({ "name": name, "arguments": arguments })).await
    }
}
