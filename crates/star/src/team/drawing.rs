//! A team drawn as Mermaid text.

use super::design::TeamDesign;

impl TeamDesign {
    /// Draws the team: its supervisor, its agents with their roles, the servers that these work with.
    pub fn mermaid(&self) -> String {
        let mut lines = vec![
            "flowchart TD".to_owned(),
            format!("    subgraph team [\"{}\"]", label(&self.name)),
            "        supervisor([supervisor])".to_owned(),
            "        qa([qa])".to_owned(),
        ];
        for (index, agent) in self.agents.iter().enumerate() {
            let name = label(&agent.name);
            let role = label(&agent.role);
            let about = if role.is_empty() { name } else { format!("{name}<br/>{role}") };
            lines.push(format!("        agent{index}[\"{about}\"]"));
            lines.push(format!("        supervisor <--> agent{index}"));
        }
        lines.push("        supervisor --> qa".to_owned());
        lines.push("    end".to_owned());
        let mut servers: Vec<&String> = Vec::new();
        for (index, agent) in self.agents.iter().enumerate() {
            for server in &agent.servers {
                let known = servers.iter().position(|known| *known == server);
                let number = known.unwrap_or_else(|| {
                    servers.push(server);
                    lines.push(format!("    server{}[({})]", servers.len() - 1, label(server)));
                    servers.len() - 1
                });
                lines.push(format!("    agent{index} -.-> server{number}"));
            }
        }
        lines.join("\n")
    }
}

fn label(text: &str) -> String {
    let plain = |letter: char| match letter {
        '"' | '`' => '\'',
        '<' => '‹',
        '>' => '›',
        '[' | '{' => '(',
        ']' | '}' => ')',
        '|' | ';' | '#' | '&' => ' ',
        other if other.is_control() => ' ',
        other => other,
    };
    let text: String = text.chars().map(plain).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TeamMember;

    /// S1.10
    #[test]
    fn a_team_is_drawn_with_its_servers_once_each_and_no_label_breaks_the_drawing() {
        let member = |name: &str, role: &str| TeamMember {
            name: name.into(),
            role: role.into(),
            goal: "g".into(),
            servers: vec!["files".into()],
        };
        let design = TeamDesign {
            name: "research".into(),
            description: "d".into(),
            agents: vec![member("reader", "reads \"all\"]"), member("writer", "a|b\nc")],
        };
        assert_eq!(
            design.mermaid(),
            "flowchart TD\n    subgraph team [\"research\"]\n        supervisor([supervisor])\n        qa([qa])\n        \
             agent0[\"reader<br/>reads 'all')\"]\n        supervisor <--> agent0\n        agent1[\"writer<br/>a b c\"]\n        \
             supervisor <--> agent1\n        supervisor --> qa\n    end\n    server0[(files)]\n    agent0 -.-> server0\n    \
             agent1 -.-> server0"
        );
    }
}
