//! The parts of a star from the settings: prompts, prices, bounds.

use std::sync::Arc;
use std::time::Duration;

use super::Error;
use perihelion_engine::checkpoint::Store;
use perihelion_llm::{Prompts, Role};
use perihelion_settings::config::{self, Settings};
use perihelion_star::{Allowance, Home, Kinds, MenuSize, Shapes, StarLimits, StarOptions};

pub(super) fn star_options(
    settings: &Settings,
    kinds: &Kinds,
    store: &Arc<dyn Store>,
) -> Result<StarOptions, Error> {
    let templates = kinds.iter().flat_map(|kind| kind.card().templates.iter().copied());
    let prompts = Prompts::with(settings.prompts.dir.as_deref(), templates.collect::<Vec<_>>())?;
    let shapes = |role: Role| Shapes::new(role, settings.models.for_role(role.as_str()).protocol);
    let lease = Duration::from_secs_f64(settings.store.lease_sec);
    let style = settings.prompts.style.as_deref().map(str::trim);
    Ok(StarOptions {
        prompts: Arc::new(prompts),
        prices: settings.models.price_list(),
        limits: star_limits(settings),
        home: Home { store: Arc::clone(store), lease },
        experience: None,
        shapes: shapes(Role::Supervisor),
        reviews: shapes(Role::Reflector),
        founder: None,
        style: style.filter(|text| !text.is_empty()).map(Into::into),
    })
}

fn star_limits(settings: &Settings) -> StarLimits {
    let limits = &settings.limits;
    let trust = &settings.trust;
    let swarm = &settings.swarm;
    let teams = &settings.teams;
    StarLimits {
        max_steps: limits.max_steps,
        max_tokens: limits.max_tokens,
        max_nano_usd: limits.max_cost_usd.map(config::nano_usd),
        deadline_sec: limits.deadline_sec,
        max_tool_calls: limits.max_tool_calls_per_task,
        turn_tool_calls: limits.max_tool_calls,
        of_teams: Allowance {
            steps: teams.max_steps,
            tokens: teams.max_tokens,
            nano_usd: teams.max_cost_usd.map(config::nano_usd),
            tool_calls: teams.max_tool_calls,
            seconds: teams.deadline_sec,
        },
        max_reflections: limits.max_reflections,
        result_bytes: limits.result_bytes,
        breaker_retries: limits.breaker_retries,
        menu: MenuSize { all: swarm.menu_agents, fitting: swarm.menu_matches },
        agent_tools: swarm.agent_tools,
        approval_timeout: Duration::from_secs_f64(trust.approval_timeout_sec),
        interactive_approval_timeout: Duration::from_secs_f64(
            trust.interactive_approval_timeout_sec,
        ),
        asks_about_taint: trust.taint == config::TaintRule::Ask,
    }
}
