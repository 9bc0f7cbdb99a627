"""What each code of a problem means and what to do about it."""

PROBLEM_TYPES = {
    "bad_request": "The request could not be understood. See `errors`.",
    "invalid_request": "The body is JSON but not of the form the operation takes. `errors` points at each fault.",
    "invalid_input": "The body has the right form but cannot be evaluated, for example a matrix that is not square.",
    "invalid_query": "A parameter of the address is unknown or has a value that is not allowed. `errors` names it.",
    "invalid_parameter": "A metric does not take the parameter, or the parameter not the value.",
    "invalid_expression": "A metric expression does not parse or makes no sense; `position` counts characters from 0.",
    "unknown_metric": "There is no metric of that name; `suggestions` has the nearest ones, GET /v1/metrics has all.",
    "unknown_label": "There is no class of that name in the evaluation; `known` lists them.",
    "not_found": "There is no such thing, or no longer.",
    "conflict": "The request contradicts the state it meets.",
    "method_not_allowed": "The address exists but does not take this method.",
    "body_too_large": "The body is larger than PREVAIL_MAX_BODY_BYTES.",
    "unsupported_media_type": "The body has to be announced as application/json.",
    "overloaded": "More is under way than the service takes. Nothing was kept; try again after `Retry-After` seconds.",
    "database_unavailable": "The database does not answer. Try again after `Retry-After` seconds.",
    "schema_outdated": "The database has not the schema of this release; run `prevail migrate`.",
    "unavailable": "Something the service depends on does not answer.",
    "internal_error": "The service failed. The log has the cause under the request id in `instance`.",
    "http_error": "The request failed for the reason in `detail`.",
}
