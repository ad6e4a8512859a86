//! From recorded calls to a method: values become parameters, chatter and secrets stay behind.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::secret::{is_secret_name, without_secrets};

/// Calls of a method at most; a longer one is no example.
const STEPS: usize = 12;

/// Characters of a text argument that are stored.
const TEXT_CHARS: usize = 1_500;

const TASK_CHARS: usize = 600;

/// Values with fewer letters are not searched in texts: every text contains an `a`.
const SHORT: usize = 2;

#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub tool: String,
    pub arguments: Value,
    pub result: String,
    /// Whether it is a part of a method; of other calls, only the results matter.
    pub is_step: bool,
}

/// A call of a method, its values as parameters in braces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    pub tool: String,
    pub arguments: Value,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lesson {
    /// The task, with the same parameters as the steps.
    pub task: String,
    pub steps: Vec<Step>,
}

/// Makes a method from the calls that solved a task; `None` if no call succeeded or there were too many.
///
/// A value in the task becomes a parameter named after its argument, in the task as well as in each call. A value in the
/// result of an earlier call becomes a parameter named after that call's tool. Calls that are no steps and repetitions
/// are left out.
pub fn distil(task: &str, calls: &[Call]) -> Option<Lesson> {
    let mut parameters = Parameters::of(task);
    let mut steps: Vec<Step> = Vec::new();
    for call in calls {
        if call.is_step {
            let arguments = parameters.without_values("value", &call.arguments);
            let step = Step { tool: call.tool.clone(), arguments };
            if !steps.contains(&step) {
                steps.push(step);
            }
        }
        parameters.earlier.push(call);
    }
    if steps.is_empty() || steps.len() > STEPS {
        return None;
    }
    let task: String = without_secrets(&parameters.task).chars().take(TASK_CHARS).collect();
    Some(Lesson { task, steps })
}

/// The values of a task that were given names, and the calls whose results have further values.
struct Parameters<'a> {
    task: String,
    named: Vec<(String, String)>,
    earlier: Vec<&'a Call>,
}

impl Parameters<'_> {
    fn of(task: &str) -> Self {
        Self { task: task.to_owned(), named: Vec::new(), earlier: Vec::new() }
    }

    fn without_values(&mut self, name: &str, value: &Value) -> Value {
        match value {
            Value::Object(fields) => {
                let field = |(name, value): (&String, &Value)| {
                    let value = if is_secret_name(name) {
                        Value::String("{secret}".to_owned())
                    } else {
                        self.without_values(name, value)
                    };
                    (name.clone(), value)
                };
                Value::Object(fields.iter().map(field).collect::<Map<_, _>>())
            }
            Value::Array(values) => {
                let one = |value: &Value| self.without_values(name, value);
                let mut values: Vec<Value> = values.iter().map(one).collect();
                values.dedup();
                Value::Array(values)
            }
            Value::String(text) => Value::String(self.in_text(name, text)),
            Value::Number(number) => match self.parameter(name, &number.to_string()) {
                Some(parameter) => Value::String(parameter),
                None => value.clone(),
            },
            Value::Bool(_) | Value::Null => value.clone(),
        }
    }

    /// Replaces a text by a parameter if the task or a result contains it, otherwise the parts that it quotes from them.
    fn in_text(&mut self, name: &str, text: &str) -> String {
        if let Some(parameter) = self.parameter(name, text) {
            return parameter;
        }
        let mut text = text.to_owned();
        for literal in literals(&text) {
            if let Some(parameter) = self.parameter(name, &literal) {
                text = replace_word(&text, &literal, &parameter);
            }
        }
        without_secrets(&text).chars().take(TEXT_CHARS).collect()
    }

    /// Returns the parameter for a value of the task, with a name from its first use, or for a value of a result.
    fn parameter(&mut self, name: &str, value: &str) -> Option<String> {
        if let Some((_, parameter)) =
            self.named.iter().find(|(known, _)| known.to_lowercase() == value.to_lowercase())
        {
            return Some(parameter.clone());
        }
        let letters = value.chars().count();
        let is_number = value.chars().all(|letter| letter.is_ascii_digit());
        if letters < SHORT && !is_number {
            return None;
        }
        if find_word(&self.task, value).is_none() {
            let mut earlier = self.earlier.iter();
            let source = earlier.find(|call| find_word(&call.result, value).is_some())?;
            return Some(format!("{{from {}}}", source.tool));
        }
        let taken = |name: &str| self.named.iter().any(|(_, known)| known == name);
        let numbered = |number: usize| match number {
            1 => format!("{{{name}}}"),
            number => format!("{{{name}_{number}}}"),
        };
        let parameter = (1..).map(numbered).find(|name| !taken(name))?;
        self.task = replace_word(&self.task, value, &parameter);
        self.named.push((value.to_owned(), parameter.clone()));
        Some(parameter)
    }
}

/// Returns the texts in quotation marks, and numbers: the places of values in queries.
fn literals(text: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for mark in ['\'', '"'] {
        let quoted = text.split(mark).skip(1).step_by(2);
        found.extend(quoted.map(|part| part.trim_matches(['%', '*']).to_owned()));
    }
    let numbers = text.split(|letter: char| !letter.is_ascii_digit() && letter != '.');
    found.extend(numbers.map(|part| part.trim_matches('.').to_owned()));
    found.retain(|literal| !literal.is_empty());
    found
}

/// Finds a value that touches no letter or digit, ignoring case.
fn find_word(text: &str, value: &str) -> Option<(usize, usize)> {
    let lower = text.to_lowercase();
    let wanted = value.to_lowercase();
    // Where lower-casing moves places, only the exact value is looked for.
    let (text, wanted) =
        if lower.len() == text.len() { (lower.as_str(), wanted.as_str()) } else { (text, value) };
    let is_letter = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    if wanted.is_empty() {
        return None;
    }
    text.match_indices(wanted).map(|(at, found)| (at, at + found.len())).find(|(start, end)| {
        let before = text.get(..*start).and_then(|before| before.chars().next_back());
        let after = text.get(*end..).and_then(|after| after.chars().next());
        !is_letter(before) && !is_letter(after)
    })
}

fn replace_word(text: &str, value: &str, parameter: &str) -> String {
    let mut replaced = String::new();
    let mut rest = text;
    while let Some((start, end)) = find_word(rest, value) {
        replaced.push_str(rest.get(..start).unwrap_or_default());
        replaced.push_str(parameter);
        rest = rest.get(end..).unwrap_or_default();
    }
    replaced + rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn call(tool: &str, arguments: Value) -> Call {
        Call { tool: tool.to_owned(), arguments, result: String::new(), is_step: true }
    }

    #[test]
    fn values_of_the_task_become_parameters_in_task_and_calls() {
        let calls = [
            call("find_city", json!({ "city": "Berlin", "limit": 10 })),
            call(
                "query",
                json!({ "sql": "SELECT count(*) FROM orders WHERE city = 'berlin' AND year = 2024" }),
            ),
        ];
        let lesson = distil("How many orders came from Berlin in 2024?", &calls).unwrap();
        assert_eq!(lesson.task, "How many orders came from {city} in {sql}?");
        assert_eq!(lesson.steps[0].arguments, json!({ "city": "{city}", "limit": 10 }));
        assert_eq!(
            lesson.steps[1].arguments,
            json!({ "sql": "SELECT count(*) FROM orders WHERE city = '{city}' AND year = {sql}" })
        );
    }

    #[test]
    fn failed_and_repeated_calls_are_left_out_and_work_without_a_call_teaches_no_skill() {
        let failed = Call { is_step: false, ..call("a", json!({})) };
        let calls = [failed.clone(), call("b", json!({ "x": 1 })), call("b", json!({ "x": 1 }))];
        assert_eq!(distil("t", &calls).unwrap().steps.len(), 1);
        assert_eq!(distil("t", &[failed]), None);
        assert_eq!(distil("t", &[]), None);
        let many: Vec<Call> = (0..20).map(|n| call("c", json!({ "n": n }))).collect();
        assert_eq!(distil("t", &many), None);
    }

    #[test]
    fn values_of_results_become_parameters_in_later_calls_alone() {
        let customer = r#"{"customer": "Ada Lovelace", "id": 90817, "open": 3}"#;
        let calls = [
            Call { result: customer.to_owned(), ..call("newest_order", json!({ "limit": 3 })) },
            // The program's own tool shows the rest of a long result.
            Call { result: "Paid: 2024".to_owned(), is_step: false, ..call("read", json!({})) },
            call("remind", json!({ "id": 90817, "name": "Ada Lovelace", "how": "mail" })),
            call("query", json!({ "sql": "SELECT * FROM t WHERE c = 'Ada Lovelace' OR y = 2024" })),
        ];
        let lesson = distil("Send the newest order's customer a reminder by mail", &calls).unwrap();
        let arguments: Vec<&Value> = lesson.steps.iter().map(|step| &step.arguments).collect();
        assert_eq!(*arguments[0], json!({ "limit": 3 }));
        let from = "{from newest_order}";
        assert_eq!(*arguments[1], json!({ "id": from, "name": from, "how": "{how}" }));
        let sql = format!("SELECT * FROM t WHERE c = '{from}' OR y = {{from read}}");
        assert_eq!(*arguments[2], json!({ "sql": sql }));
    }

    #[test]
    fn secrets_and_addresses_stay_behind() {
        let calls = [call(
            "login",
            json!({ "password": "hunter2", "note": "key sk-proj-abcdefghijklmnop", "to": ["ada@example.com"] }),
        )];
        let lesson =
            distil("Log in with sk-proj-abcdefghijklmnop as bob@example.com", &calls).unwrap();
        let text = serde_json::to_string(&lesson).unwrap();
        for secret in ["hunter2", "sk-proj", "example.com"] {
            assert!(!text.contains(secret), "{text}");
        }
    }

    #[test]
    fn short_values_and_parts_of_words_are_no_parameters() {
        let calls = [call("t", json!({ "unit": "C", "mode": "or", "n": 5 }))];
        let lesson = distil("Order a cable of 15 metres", &calls).unwrap();
        assert_eq!(lesson.task, "Order a cable of 15 metres");
        assert_eq!(lesson.steps[0].arguments, json!({ "unit": "C", "mode": "or", "n": 5 }));
    }
}
