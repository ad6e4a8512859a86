//! Teams as people and programs see them.

use serde_json::{Value, json};

use crate::cli::output;
use perihelion_runtime::{KeptTeam, Team, TeamDesign, TeamMember};

pub(super) fn json(kept: &KeptTeam) -> Value {
    let Team { version, design } = &kept.team;
    json!({
        "name": design.name,
        "version": version,
        "agent": kept.team.agent_name(),
        "description": design.description,
        "agents": design.agents,
        "created_at": kept.created_at.to_rfc3339(),
    })
}

pub(super) fn list(teams: &[KeptTeam]) -> String {
    let row = |kept: &KeptTeam| {
        let Team { version, design } = &kept.team;
        let agents: Vec<&str> = design.agents.iter().map(|agent| agent.name.as_str()).collect();
        [
            design.name.clone(),
            version.to_string(),
            agents.join(", "),
            output::brief(&design.description, 80),
        ]
    };
    output::table(["TEAM", "VERSION", "AGENTS", "DESCRIPTION"], teams.iter().map(row).collect())
}

pub(super) fn whole(kept: &KeptTeam) -> String {
    let Team { version, design } = &kept.team;
    let made = kept.created_at.format("%Y-%m-%d %H:%M");
    format!(
        "{}  version {version}, {made}\n{}\n\n{}",
        design.name,
        design.description,
        agents(design)
    )
}

/// Returns a design as it is shown before it is kept: the drawing, then the table.
pub(super) fn proposal(design: &TeamDesign) -> String {
    let drawing = design.mermaid();
    let agents = agents(design);
    format!("{}\n{}\n\n{drawing}\n\n{agents}", design.name, design.description)
}

fn agents(design: &TeamDesign) -> String {
    let row = |agent: &TeamMember| {
        [agent.name.clone(), agent.role.clone(), agent.servers.join(", "), agent.goal.clone()]
    };
    output::table(["AGENT", "ROLE", "SERVERS", "GOAL"], design.agents.iter().map(row).collect())
}

pub(super) fn saved(team: &Team) -> String {
    let name = &team.design.name;
    let version = team.version;
    format!(
        "saved the team {name}, version {version}; ask it with: perihelion teams run {name} QUESTION"
    )
}
