//! Asks the user, and takes the answer into the session's history.

use super::question::{Question, text_of};
use super::state::{GraphState, GraphUpdate, Message, Routing};
use super::{breaker, node, taint};
use perihelion_engine::graph::{Context, NodeError, NodeOutput, Target};

/// Questions that one request may put to the user.
const MOST: u32 = 5;

/// Returns what is wrong with one more question.
pub(super) fn too_many(state: &GraphState) -> Option<String> {
    (state.routing.asked >= MOST).then(|| {
        format!(
            "the user was asked {MOST} questions for this request already: decide by what is known, make assumptions and \
             state them, or choose qa"
        )
    })
}

/// Keeps the question for the next step, which puts it.
///
/// It is committed first, so that the answer finds the same question after days, whatever changed
/// in the menu or the prompts meanwhile.
pub(super) fn prepare(
    state: &GraphState,
    update: GraphUpdate,
    question: String,
) -> NodeOutput<GraphState> {
    let asked = state.routing.asked + 1;
    let routing = Routing { question: Some(question), asked, ..breaker::cleared(&state.routing) };
    let update = update.routing(routing).next_step(vec![node::SUPERVISOR.to_owned()]);
    NodeOutput::goto(update, [Target::node(node::SUPERVISOR)])
}

/// Suspends the run with the question and continues with the answer as a part of the history.
///
/// # Errors
/// [`NodeError::Interrupted`] until it is answered.
pub(super) async fn put(
    ctx: &Context<GraphState>,
    question: String,
) -> Result<NodeOutput<GraphState>, NodeError> {
    let asked =
        Question::Clarification { question: question.clone(), options: Vec::new(), agent: None };
    let answer = asked.put(ctx).await?;
    let state = ctx.state();
    let place = |who| (state.turn, ctx.place().step, who);
    let question = Message {
        name: Some(node::SUPERVISOR.to_owned()),
        tainted_by: taint::of_talk(state),
        ..Message::new(place("question"), "assistant", question)
    };
    let answer = Message::new(place("clarification"), "user", text_of(&answer));
    let messages = vec![question, answer];
    let routing = Routing { question: None, ..state.routing.clone() };
    let update = GraphUpdate::new()
        .messages(messages.into_iter().collect())
        .routing(routing)
        .next_step(vec![node::SUPERVISOR.to_owned()]);
    Ok(NodeOutput::goto(update, [Target::node(node::SUPERVISOR)]))
}
