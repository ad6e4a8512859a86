//! Decides the policy of a tool's calls: the operator's declaration first, then the server's hints.
//!
//! Hints are claims. Hints can always make a rule stricter, and milder only for a server with
//! `trust_annotations = true`. That a tool only reads is also taken from a bundled server, which is this program.

use crate::configuration::{ApprovalMode, Effect, ToolPolicy};
use crate::types::{CallPolicy, ToolAnnotations};

impl CallPolicy {
    pub(crate) fn of(policy: &ToolPolicy, tool: &str, hints: &ToolAnnotations) -> Self {
        let own = policy.by_name.get(tool);
        let effect = effect(policy, own.and_then(|own| own.effect), hints);
        let own_mode = own.and_then(|own| own.approval_mode);
        let mode = own_mode.unwrap_or(policy.default_approval);
        let trusted_to_read = policy.trust_annotations && hints.read_only == Some(true);
        let needs_approval = match mode {
            // A setting of this tool alone has no exceptions; one of all tools does.
            ApprovalMode::Prompt => own_mode.is_some() || !trusted_to_read,
            ApprovalMode::Auto => hints.destructive == Some(true) && effect != Effect::ReadOnly,
            ApprovalMode::Approve => false,
        };
        Self {
            needs_approval,
            approved_in_advance: mode == ApprovalMode::Approve,
            read_only: effect == Effect::ReadOnly,
            repeatable: effect != Effect::Write,
            // The specification's default: anyone who says nothing reaches the open world.
            open_world: policy.open_world.unwrap_or(hints.open_world != Some(false)),
        }
    }
}

fn effect(policy: &ToolPolicy, own: Option<Effect>, hints: &ToolAnnotations) -> Effect {
    match (own, policy.default_effect) {
        (Some(own), _) => own,
        (None, Effect::Write) if policy.trust_annotations => match hints {
            ToolAnnotations { read_only: Some(true), .. } => Effect::ReadOnly,
            ToolAnnotations { idempotent: Some(true), .. } => Effect::Idempotent,
            _ => Effect::Write,
        },
        (None, Effect::Write) if policy.is_bundled && hints.read_only == Some(true) => {
            Effect::ReadOnly
        }
        (None, default) => default,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::configuration::ToolTable;

    const READER: ToolAnnotations = ToolAnnotations {
        read_only: Some(true),
        destructive: None,
        idempotent: None,
        open_world: Some(false),
    };
    const SHREDDER: ToolAnnotations = ToolAnnotations {
        read_only: None,
        destructive: Some(true),
        idempotent: Some(true),
        open_world: Some(true),
    };

    fn policy(default_approval: ApprovalMode, trust_annotations: bool) -> ToolPolicy {
        ToolPolicy { default_approval, trust_annotations, ..ToolPolicy::default() }
    }

    fn table(approval_mode: Option<ApprovalMode>, effect: Option<Effect>) -> ToolTable {
        ToolTable { approval_mode, effect, ..ToolTable::default() }
    }

    /// X6: a server's hints make rules stricter, and milder only if it is trusted.
    #[test]
    fn hints_always_tighten_and_loosen_only_when_trusted() {
        let prompt = policy(ApprovalMode::Prompt, false);
        assert!(CallPolicy::of(&prompt, "t", &READER).needs_approval);
        assert!(!CallPolicy::of(&prompt, "t", &READER).read_only);
        let auto = policy(ApprovalMode::Auto, false);
        let shredder = CallPolicy::of(&auto, "t", &SHREDDER);
        assert!(shredder.needs_approval && shredder.open_world && !shredder.repeatable);
        assert!(!CallPolicy::of(&auto, "t", &ToolAnnotations::default()).needs_approval);

        let trusting = policy(ApprovalMode::Prompt, true);
        let reader = CallPolicy::of(&trusting, "t", &READER);
        assert!(!reader.needs_approval && reader.read_only && reader.repeatable);
        assert!(CallPolicy::of(&trusting, "t", &SHREDDER).repeatable, "a trusted idempotentHint");
        assert!(CallPolicy::of(&trusting, "t", &SHREDDER).needs_approval);
    }

    /// X6: the readers of bundled servers need no word of the operator; what changes something does.
    #[test]
    fn a_bundled_server_is_believed_that_a_tool_only_reads() {
        let bundled = ToolPolicy { is_bundled: true, ..ToolPolicy::default() };
        assert!(CallPolicy::of(&bundled, "t", &READER).read_only);
        assert!(!CallPolicy::of(&bundled, "t", &SHREDDER).repeatable);
        let mut declared = bundled;
        declared.by_name.insert("t".into(), table(None, Some(Effect::Write)));
        assert!(!CallPolicy::of(&declared, "t", &READER).read_only);
    }

    #[test]
    fn the_stricter_of_two_policies_wins_rule_by_rule_and_a_person_overrides_both() {
        let asks = policy(ApprovalMode::Prompt, false);
        let goes = policy(ApprovalMode::Approve, true);
        let asks = CallPolicy::of(&asks, "t", &SHREDDER);
        let goes = CallPolicy::of(&goes, "t", &READER);
        let strict = asks.stricter(goes);
        assert_eq!(strict, goes.stricter(asks));
        assert!(strict.needs_approval && strict.open_world);
        assert!(!strict.approved_in_advance && !strict.read_only && !strict.repeatable);
        assert!(goes.is_weaker_than(asks) && !asks.is_weaker_than(goes));
        assert!(goes.allowed().is_weaker_than(asks), "what it returns would not be marked");
        let trusted = CallPolicy { open_world: true, ..goes };
        assert!(trusted.is_weaker_than(asks) && !trusted.allowed().is_weaker_than(asks));
    }

    /// X6: MCP's default of `openWorldHint` is true, without any declaration.
    #[test]
    fn a_tool_without_hints_counts_as_open_world() {
        let silent = ToolAnnotations::default();
        let mut policy = ToolPolicy::default();
        assert!(CallPolicy::of(&policy, "t", &silent).open_world);
        assert!(!CallPolicy::of(&policy, "t", &READER).open_world);
        policy.open_world = Some(false);
        assert!(!CallPolicy::of(&policy, "t", &silent).open_world);
    }

    #[test]
    fn the_setting_of_the_operator_for_one_tool_overrides_every_hint() {
        let mut policy = policy(ApprovalMode::Auto, true);
        for (name, mode, effect) in [
            ("ask", Some(ApprovalMode::Prompt), Some(Effect::Write)),
            ("go", Some(ApprovalMode::Approve), None),
            ("read", None, Some(Effect::ReadOnly)),
        ] {
            policy.by_name.insert(name.into(), table(mode, effect));
        }
        policy.open_world = Some(false);
        let ask = CallPolicy::of(&policy, "ask", &READER);
        assert!(ask.needs_approval && !ask.read_only && !ask.repeatable);
        let go = CallPolicy::of(&policy, "go", &SHREDDER);
        assert!(!go.needs_approval && go.approved_in_advance && !go.open_world);
        assert!(!CallPolicy::of(&policy, "read", &SHREDDER).needs_approval);
    }
}
