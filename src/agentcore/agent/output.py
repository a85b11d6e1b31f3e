"""How a model's answer becomes the `output_type`: by a tool, or by native JSON."""

from __future__ import annotations

from typing import Any, Final

from pydantic import BaseModel, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticSchemaGenerationError, PydanticUserError

from agentcore._base.describe import error_text
from agentcore.errors import OutputInvalid
from agentcore.types.json import JsonObject
from agentcore.types.model import OutputSchema
from agentcore.types.tools import OUTPUT_TOOL, ToolSpec

_WRAPPED: Final = "value"
_ERRORS_SHOWN: Final = 10


class TypedOutput:
    """Validates the answer with pydantic; the errors are words for the model.

    A type whose schema is no object (a list, a number, a union) is wrapped in an object
    with one field, because tools and most vendors take nothing else.
    """

    def __init__(self, output_type: Any, *, native: bool) -> None:
        try:
            adapter: TypeAdapter[Any] = TypeAdapter(output_type)
            schema = adapter.json_schema()
        except (PydanticSchemaGenerationError, PydanticUserError) as error:
            raise OutputInvalid(
                f"output_type {output_type!r} cannot be described by a JSON Schema "
                f"({error_text(error).splitlines()[0]}); use a pydantic model, a "
                "dataclass, a TypedDict or built-in types"
            ) from error
        self._adapter = adapter
        self._wrapped = not _is_object(schema)
        self._wrapper: Any = None
        if self._wrapped:
            self._wrapper = create_model("Wrapped", value=(output_type, ...))
        shape = _wrap(schema) if self._wrapped else schema
        description = _description(output_type)
        self.tool: ToolSpec | None = None
        self.schema: OutputSchema | None = None
        if native:
            self.schema = OutputSchema(OUTPUT_TOOL, shape, description)
        else:
            self.tool = ToolSpec(
                OUTPUT_TOOL,
                description or "Give the final answer through this tool.",
                shape,
                effects="none",
                replay="safe",
            )

    def check(self, text: str) -> str:
        """Why this JSON text is no valid output; empty if it is one."""
        try:
            self.value(text)
        except ValidationError as error:
            return _readable(error)
        except Exception as error:  # noqa: BLE001 - a validator of the host's type
            return f"the answer was refused: {error_text(error)}"
        return ""

    def value(self, text: str) -> Any:
        """The validated output.

        Raises:
            ValidationError: `check` would have told why.
        """
        if not self._wrapped:
            return self._adapter.validate_json(text)
        return self._wrapper.model_validate_json(text).value


def _is_object(schema: JsonObject) -> bool:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return _is_object(schema.get("$defs", {}).get(name, {}))
    return schema.get("type") == "object"


def _wrap(schema: JsonObject) -> JsonObject:
    inner = {key: value for key, value in schema.items() if key != "$defs"}
    shape: dict[str, Any] = {
        "type": "object",
        "properties": {_WRAPPED: inner},
        "required": [_WRAPPED],
        "additionalProperties": False,
    }
    if "$defs" in schema:
        shape["$defs"] = schema["$defs"]
    return shape


def _description(output_type: Any) -> str:
    if not isinstance(output_type, type) or output_type.__doc__ is None:
        return ""
    if issubclass(output_type, BaseModel) or "__dataclass_fields__" in vars(
        output_type
    ):
        return output_type.__doc__.strip()
    return ""


def _readable(error: ValidationError) -> str:
    lines = []
    for item in error.errors(include_url=False, include_context=False)[:_ERRORS_SHOWN]:
        where = ".".join(str(step) for step in item["loc"]) or "answer"
        lines.append(f"{where}: {item['msg']}")
    return "the answer does not fit the schema: " + "; ".join(lines)
