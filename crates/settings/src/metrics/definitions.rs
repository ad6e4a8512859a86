//! Every instrument: its name, kind, unit, labels and meaning.
//!
//! Names that begin with `gen_ai.` follow the OpenTelemetry conventions for generative AI, which are still in
//! development; the rest are this program's own.

use opentelemetry::metrics::{Counter, Gauge, Histogram, Meter, UpDownCounter};

pub mod label {
    pub const AGENT: &str = "gen_ai.agent.name";
    pub const ERROR: &str = "error.type";
    pub const MODALITY: &str = "gen_ai.token.modality";
    pub const MODEL: &str = "gen_ai.response.model";
    pub const OPERATION: &str = "gen_ai.operation.name";
    pub const PROVIDER: &str = "gen_ai.provider.name";
    pub const SERVER: &str = "mcp.server.name";
    pub const TOOL: &str = "gen_ai.tool.name";
    pub const WORKFLOW: &str = "gen_ai.workflow.name";
    pub const EFFECT: &str = "perihelion.effect.kind";
    pub const GRAPH: &str = "perihelion.graph";
    pub const INTERRUPT: &str = "perihelion.interrupt.kind";
    pub const OUTCOME: &str = "perihelion.outcome";
    pub const REASON: &str = "perihelion.reason";
    pub const ROLE: &str = "perihelion.role";
    pub const SIGNAL: &str = "perihelion.signal";
    pub const STATUS: &str = "perihelion.status";
    pub const VERDICT: &str = "perihelion.verdict";
}

use label as l;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A whole number that only grows.
    Counter,
    /// A fraction that only grows.
    Sum,
    /// How long single things took.
    Duration,
    /// The same for what may take hours.
    LongDuration,
    /// A number that grows and shrinks.
    UpDown,
    /// A number as it is now.
    Gauge,
}

#[derive(Clone, Copy, Debug)]
pub struct Definition {
    pub name: &'static str,
    pub kind: Kind,
    /// In UCUM notation; counted things are in braces.
    pub unit: &'static str,
    pub labels: &'static [&'static str],
    pub meaning: &'static str,
}

/// Bounds of the buckets for what takes milliseconds to minutes, in seconds.
const SECONDS: [f64; 15] =
    [0.001, 0.005, 0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 40.96, 81.92];

/// The same for what takes seconds to hours.
const HOURS: [f64; 12] =
    [0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1_800.0, 3_600.0, 7_200.0];

macro_rules! instrument {
    (Counter) => { Counter<u64> };
    (Sum) => { Counter<f64> };
    (Duration) => { Histogram<f64> };
    (LongDuration) => { Histogram<f64> };
    (UpDown) => { UpDownCounter<i64> };
    (Gauge) => { Gauge<u64> };
}

macro_rules! builder {
    (Counter, $meter:ident, $name:literal) => {
        $meter.u64_counter($name)
    };
    (Sum, $meter:ident, $name:literal) => {
        $meter.f64_counter($name)
    };
    (Duration, $meter:ident, $name:literal) => {
        $meter.f64_histogram($name).with_boundaries(SECONDS.to_vec())
    };
    (LongDuration, $meter:ident, $name:literal) => {
        $meter.f64_histogram($name).with_boundaries(HOURS.to_vec())
    };
    (UpDown, $meter:ident, $name:literal) => {
        $meter.i64_up_down_counter($name)
    };
    (Gauge, $meter:ident, $name:literal) => {
        $meter.u64_gauge($name)
    };
}

macro_rules! instruments {
    ($($field:ident: $kind:ident $name:literal, $unit:literal, [$($label:expr),*], $meaning:literal;)+) => {
        /// Every instrument, in the order of the documentation.
        pub const DEFINITIONS: &[Definition] = &[$(Definition {
            name: $name,
            kind: Kind::$kind,
            unit: $unit,
            labels: &[$($label),*],
            meaning: $meaning,
        }),+];

        /// The instruments, each under the name of its field.
        pub struct Instruments { $(pub $field: instrument!($kind),)+ }

        impl Instruments {
            pub fn new(meter: &Meter) -> Self {
                Self {
                    $($field: builder!($kind, meter, $name)
                        .with_unit($unit)
                        .with_description($meaning)
                        .build(),)+
                }
            }
        }
    };
}

instruments! {
    input_tokens: Counter "gen_ai.client.inference.usage.input_tokens", "{token}",
        [l::OPERATION, l::PROVIDER, l::MODEL, l::MODALITY, l::ROLE], "Tokens sent to models";
    output_tokens: Counter "gen_ai.client.inference.usage.output_tokens", "{token}",
        [l::OPERATION, l::PROVIDER, l::MODEL, l::MODALITY, l::ROLE], "Tokens received from models";
    model_calls: Duration "gen_ai.client.inference.duration", "s",
        [l::OPERATION, l::PROVIDER, l::MODEL, l::ROLE, l::ERROR], "A model call, retries included";
    runs: LongDuration "gen_ai.invoke_workflow.duration", "s",
        [l::WORKFLOW, l::STATUS], "A run in this process, from claim to release of the thread";
    agents: LongDuration "gen_ai.invoke_agent.duration", "s",
        [l::AGENT, l::ERROR], "An agent's work on one task in this process";
    tools: Duration "gen_ai.execute_tool.duration", "s",
        [l::SERVER, l::TOOL, l::ERROR], "A tool call";
    runs_started: Counter "perihelion.runs.started", "{run}",
        [l::GRAPH], "Started runs, including resumed ones";
    runs_ended: Counter "perihelion.runs.ended", "{run}",
        [l::GRAPH, l::STATUS], "Ended runs: done, interrupted, failed, cancelled or queued (handed over)";
    runs_active: UpDown "perihelion.runs.active", "{run}",
        [l::GRAPH], "Running runs in this process";
    steps: Counter "perihelion.steps.committed", "{step}",
        [], "Super-steps acknowledged by the database";
    commits: Duration "perihelion.commit.duration", "s",
        [l::ERROR], "The commit of one super-step";
    recorded: Counter "perihelion.effects.recorded", "{effect}",
        [l::EFFECT], "Performed and recorded effects";
    read_back: Counter "perihelion.effects.read_back", "{effect}",
        [l::EFFECT], "Recorded outcomes that were read instead of repeating the effect";
    interrupts: Counter "perihelion.interrupts", "{interrupt}",
        [l::INTERRUPT], "Questions to people; unknown outcomes are outcome_unknown";
    trips: Counter "perihelion.breaker.trips", "{trip}",
        [l::REASON], "Turns ended early by the circuit breaker or a limit";
    retries: Counter "perihelion.model.retries", "{retry}",
        [l::ROLE, l::REASON], "Repeated requests to a model";
    cost: Sum "perihelion.model.cost", "{USD}",
        [l::MODEL, l::ROLE], "US dollars for model calls, if prices are set";
    reflections: Counter "perihelion.reflections", "{reflection}",
        [l::AGENT, l::VERDICT], "Reviews of agents' results";
    citations_removed: Counter "perihelion.citations.removed", "{citation}",
        [l::AGENT], "Removed invalid citations";
    threads: Gauge "perihelion.threads", "{thread}",
        [l::STATUS], "Threads in the database, equal in every process";
    pending: Gauge "perihelion.traces.pending", "{thread}",
        [], "Threads in the database with undelivered traces";
    deliveries: Counter "perihelion.export.deliveries", "{delivery}",
        [l::SIGNAL, l::OUTCOME], "Deliveries to the collector";
    spans: Counter "perihelion.export.spans", "{span}",
        [l::OUTCOME], "Spans of delivered traces, accepted or rejected by the collector";
    leases_lost: Counter "perihelion.leases.lost", "{lease}",
        [], "Runs that lost their thread to another process";
    leases_taken: Counter "perihelion.leases.taken_over", "{lease}",
        [], "Threads taken over from a dead or stopped process";
    server_up: Gauge "perihelion.mcp.server.up", "{connection}",
        [l::SERVER], "1 if the MCP server is connected, otherwise 0";
    server_retries: Counter "perihelion.mcp.server.retries", "{attempt}",
        [l::SERVER, l::OUTCOME], "Repeated attempts to start or reach an MCP server";
    call_errors: Counter "perihelion.mcp.call.errors", "{call}",
        [l::SERVER, l::ERROR], "Failed tool calls";
}
