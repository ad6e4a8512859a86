//! The JSON-RPC binding.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse as _, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::tasks::Send;
use super::{card, list, push, rest, shapes, stream, tasks};
use crate::agent_server;
use perihelion_service::Service;

pub(super) async fn call(
    State(service): State<Service>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let read = rest::check_kind(&headers)
        .and_then(|()| agent_server::json(&body).map_err(|why| Refusal::Parse(why.to_owned())));
    let request = match read {
        Ok(request) => request,
        Err(refusal) => return Json(refusal.rpc(&Value::Null)).into_response(),
    };
    let id = request.get("id").cloned().unwrap_or(Value::Null);
    match answer(&service, &headers, &request, &id).await {
        Ok(response) => response,
        Err(refusal) => Json(refusal.rpc(&id)).into_response(),
    }
}

async fn answer(
    service: &Service,
    headers: &HeaderMap,
    request: &Value,
    id: &Value,
) -> Result<Response, Refusal> {
    rest::check_version(headers)?;
    let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
    let named = || -> Result<String, Refusal> {
        let id = params.get("id").and_then(Value::as_str);
        id.map(str::to_owned).ok_or_else(|| Refusal::Invalid("params.id must name a task".into()))
    };
    let of_task = || -> Result<String, Refusal> {
        let id = params.get("taskId").or_else(|| params.get("task_id")).and_then(Value::as_str);
        id.map(str::to_owned)
            .ok_or_else(|| Refusal::Invalid("params.taskId must name a task".into()))
    };
    let result = match request["method"].as_str().unwrap_or_default() {
        "SendMessage" => rest::sent(service, read(params)?).await?,
        "SendStreamingMessage" => {
            let send: Send = read(params)?;
            let (run, task) = tasks::begin(service, send).await?;
            let task = tasks::found(service, &task.to_string()).await?;
            return stream::follow(service, run, task, Some(id.clone())).await;
        }
        "SubscribeToTask" => return stream::join(service, &named()?, Some(id.clone())).await,
        "GetTask" => {
            let task = tasks::found(service, &named()?).await?;
            let shown: rest::Shown = read(params)?;
            shapes::short_task(&task, shown.history_length)
        }
        "CancelTask" => shapes::task(&tasks::cancel(service, &named()?).await?),
        "ListTasks" => list::listed(service, &read(params)?).await?,
        "GetExtendedAgentCard" => card::extended(service, headers).await?,
        "CreateTaskPushNotificationConfig" => {
            let config: push::Config = read(params.clone())?;
            let task = config.task_id.clone().unwrap_or_default();
            push::create(service, &task, config).await?
        }
        "GetTaskPushNotificationConfig" => push::get(service, &of_task()?, &named()?).await?,
        "ListTaskPushNotificationConfigs" => push::list(service, &of_task()?).await?,
        "DeleteTaskPushNotificationConfig" => {
            push::delete(service, &of_task()?, &named()?).await?;
            Value::Null
        }
        other => return Err(Refusal::UnknownMethod(other.to_owned())),
    };
    Ok(Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response())
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|error| Refusal::Invalid(error.to_string()))
}
