//! A small HTTP API on loopback for the hands demo: the zones of a country, and their positions.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio_util::task::AbortOnDropHandle;

use perihelion_servers::demo_data;

pub(super) struct Atlas {
    pub(super) url: String,
    _task: AbortOnDropHandle<()>,
}

type Zones = BTreeMap<String, Vec<Value>>;

impl Atlas {
    pub(super) async fn start() -> io::Result<Self> {
        let zones = Arc::new(zones()?);
        let router =
            Router::new().route("/v1/countries/{code}/zones", get(of_country)).with_state(zones);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/v1", listener.local_addr()?);
        let task = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::warn!(%error, "the demo's API ended");
            }
        });
        Ok(Self { url, _task: AbortOnDropHandle::new(task) })
    }
}

async fn of_country(State(zones): State<Arc<Zones>>, Path(code): Path<String>) -> Response {
    match zones.get(&code.to_ascii_uppercase()) {
        Some(found) => Json(found).into_response(),
        None => {
            let reply = json!({ "error": format!("no such country: {code}") });
            (StatusCode::NOT_FOUND, Json(reply)).into_response()
        }
    }
}

fn zones() -> io::Result<Zones> {
    let mut places = BTreeMap::new();
    for row in demo_data::rows("zones")? {
        if let [name, latitude, longitude, comment] = row.as_slice() {
            let number = |text: &String| text.parse::<f64>().unwrap_or_default();
            let place = json!({
                "zone": name, "latitude": number(latitude), "longitude": number(longitude), "comment": comment,
            });
            places.insert(name.clone(), place);
        }
    }
    let mut zones = Zones::new();
    for row in demo_data::rows("zone_countries")? {
        if let [zone, country] = row.as_slice()
            && let Some(place) = places.get(zone)
        {
            zones.entry(country.clone()).or_default().push(place.clone());
        }
    }
    Ok(zones)
}

pub(super) const DESCRIPTION: &str = include_str!("atlas.json");
