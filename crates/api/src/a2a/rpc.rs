//! The JSON-RPC binding.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse as _, Response};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::refusal::Refusal;
use super::{card, list, push, rest, shapes, stream, tasks};
use perihelion_service::Service;

pub(super) async fn call(
    State(service): State<Service>,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let read = rest::check_kind(&headers)
        .and_then(|()| crate::http::json(&body).map_err(|why| Refusal::Parse(why.to_owned())));
    let request = match read {
        Ok(request) => request,
        Err(refusal) => return Json(refusal.rpc(&Value::Null)).into_response(),
    };
    let id = request.get("id").cloned().unwrap_or(Value::Null);
    let answered = match rest::check_version(&uri, &headers) {
        Ok(()) => answer(&service, &headers, &request, &id).await,
        Err(refusal) => Err(refusal),
    };
    answered.unwrap_or_else(|refusal| Json(refusal.rpc(&id)).into_response())
}

async fn answer(
    service: &Service,
    headers: &HeaderMap,
    request: &Value,
    id: &Value,
) -> Result<Response, Refusal> {
    let params = request.get("params").cloned().unwrap_or_else(|| json!({}));
    let named = |name: &str, other: &str| -> Result<String, Refusal> {
        let id = params.get(name).or_else(|| params.get(other)).and_then(Value::as_str);
        id.map(str::to_owned)
            .ok_or_else(|| Refusal::Invalid(format!("params.{name} must name a task")))
    };
    let id_of = || named("id", "id");
    let of_task = || named("taskId", "task_id");
    let result = match request["method"].as_str().unwrap_or_default() {
        "SendMessage" => rest::sent(service, read(params)?).await?,
        "SendStreamingMessage" => {
            return stream::begin(service, read(params)?, Some(id.clone())).await;
        }
        "SubscribeToTask" => return stream::join(service, &id_of()?, Some(id.clone())).await,
        "GetTask" => {
            let task = tasks::found(service, &id_of()?).await?;
            let shown: rest::Shown = read(params)?;
            shapes::short_task(&task, shown.history_length)
        }
        "CancelTask" => shapes::task(&tasks::cancel(service, &id_of()?).await?),
        "ListTasks" => list::listed(service, &read(params)?).await?,
        "GetExtendedAgentCard" => card::extended(service, headers).await?,
        "CreateTaskPushNotificationConfig" => {
            let config: push::Config = read(params.clone())?;
            let task = config.task_id.clone().unwrap_or_default();
            push::create(service, &task, config).await?
        }
        "GetTaskPushNotificationConfig" => push::get(service, &of_task()?, &id_of()?).await?,
        "ListTaskPushNotificationConfigs" => push::list(service, &of_task()?).await?,
        "DeleteTaskPushNotificationConfig" => push::delete(service, &of_task()?, &id_of()?).await?,
        other => return Err(Refusal::UnknownMethod(other.to_owned())),
    };
    Ok(Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response())
}

fn read<T: DeserializeOwned>(params: Value) -> Result<T, Refusal> {
    serde_json::from_value(params).map_err(|error| Refusal::Invalid(error.to_string()))
}
