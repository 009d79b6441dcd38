"""A receiver of OTLP/HTTP as a protocol of the tests' receiver, with the official messages."""

from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import (
    ExportLogsPartialSuccess,
    ExportLogsServiceRequest,
    ExportLogsServiceResponse,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from tests.shipping.receiver import Request, Status

TYPE = "application/x-protobuf"


class Otlp:
    """Takes log records; the events that the receiver keeps are their bodies.

    Attributes:
        path: where it accepts requests.
        poison: events with this word in them are refused, without saying which.
        message: what it says with each response.
        records: all log records that were accepted.
        scopes: the names of the programs that sent them.
    """

    def __init__(self) -> None:
        self.path = "/v1/logs"
        self.poison = ""
        self.message = ""
        self.records: list[LogRecord] = []
        self.scopes: set[str] = set()
        self._rejected = 0

    def events(self, request: Request) -> list[Any]:
        if request.path != self.path or request.headers.get("content-type") != TYPE:
            raise ValueError(f"{request.path} with {request.headers.get('content-type')}")
        try:
            message = ExportLogsServiceRequest.FromString(request.body)
        except DecodeError as error:
            raise ValueError("not an ExportLogsServiceRequest") from error
        (resource_logs,) = message.resource_logs
        (scope_logs,) = resource_logs.scope_logs
        assert value_of(resource_logs.resource.attributes[0].value) == "audit-events"
        self.scopes.add(scope_logs.scope.name)
        records = list(scope_logs.log_records)
        if not records:
            raise ValueError("an empty request")
        kept = [each for each in records if not self.poison or self.poison not in str(each)]
        self._rejected = len(records) - len(kept)
        self.records += kept
        return [value_of(each.body) for each in kept]

    def response(self, request: Request) -> Status:
        response = ExportLogsServiceResponse()
        if self._rejected or self.message:
            response.partial_success.CopyFrom(
                ExportLogsPartialSuccess(
                    rejected_log_records=self._rejected, error_message=self.message
                )
            )
        return Status(200, {"Content-Type": TYPE}, response.SerializeToString())


def value_of(value: AnyValue) -> Any:
    """The value in Python's types."""
    match value.WhichOneof("value"):
        case None:
            return None
        case "kvlist_value":
            return {each.key: value_of(each.value) for each in value.kvlist_value.values}
        case "array_value":
            return [value_of(each) for each in value.array_value.values]
        case kind:
            return getattr(value, kind)
