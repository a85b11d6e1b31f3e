"""Collections of tools are flat, named once, and refused where they are ambiguous."""

from typing import Any

import pytest
from tests.tools.helpers import context

from agentcore.errors import ConfigError
from agentcore.protocols.tools import SyncTool, Tool
from agentcore.tools import Toolset, collect_tools, tool
from agentcore.types.context import ToolContext
from agentcore.types.json import JsonObject
from agentcore.types.tools import ToolResult, ToolSpec


@tool
async def search(query: str) -> str:
    """Search."""
    return query


def lookup(key: str) -> str:
    """Look up."""
    return key


class Foreign:
    """A tool that is no function."""

    def __init__(self, name: str = "foreign") -> None:
        self.spec = ToolSpec(name, "Foreign.", {"type": "object"})

    def check(self, arguments: str) -> JsonObject:
        return {"raw": arguments}

    async def call(
        self, arguments: JsonObject, context: ToolContext[Any]
    ) -> ToolResult:
        return ToolResult.of_text(f"called {arguments['raw']}")


class ForeignSync(Foreign):
    def call_sync(self, arguments: JsonObject, context: ToolContext[Any]) -> ToolResult:
        return ToolResult.of_text("blocked")


class Specless(Foreign):
    def __init__(self) -> None:
        self.spec: Any = "none"


def names(tools: Any) -> list[str]:
    return [tool.spec.name for tool in tools]


def test_tools_functions_toolsets_and_foreign_tools_are_collected_in_order() -> None:
    foreign = Foreign()

    found = collect_tools([lookup, Toolset([search]), foreign])

    assert names(found) == ["lookup", "search", "foreign"]
    assert found[1] is search
    assert found[2] is foreign
    assert all(isinstance(item, Tool) for item in found)
    assert collect_tools([]) == ()


def test_a_toolset_alone_is_a_list_of_tools() -> None:
    assert collect_tools(Toolset([search])) == (search,)


def test_two_tools_of_one_name_are_both_named() -> None:
    def other(key: str) -> str:
        """Other."""
        return key

    with pytest.raises(ConfigError) as caught:
        collect_tools([lookup, tool(other, name="lookup")])

    assert "two tools are named 'lookup'" in str(caught.value)
    assert "test_toolset.lookup" in str(caught.value)
    assert "<locals>.other" in str(caught.value)
    with pytest.raises(ConfigError, match=r"test_toolset\.Foreign and .*Foreign"):
        collect_tools([Foreign(), Foreign()])


@pytest.mark.parametrize(
    ("items", "said"),
    [
        ("search", "tools= takes a list of tools, not 'search'"),
        (search, "tools= takes a list"),
        (None, "tools= takes a list"),
        (["search"], "tools= holds 'search', which is no tool"),
        ([3], "tools= holds 3"),
        ([Foreign], "pass a @tool function"),
        ([Specless()], "must be a ToolSpec"),
        ([Foreign("no name")], "no legal tool name"),
        ([lambda x: x], "has no annotation"),
    ],
)
def test_what_is_no_tool_is_refused(items: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        collect_tools(items)

    assert said in str(caught.value)


async def test_a_prefix_stands_before_every_name_and_changes_nothing_else() -> None:
    tools = Toolset([search, Foreign(), ForeignSync("sync")], prefix="web_")

    assert names(tools) == ["web_search", "web_foreign", "web_sync"]
    assert tools.name == "web"
    first, second, third = tools
    assert search.spec.name == "search"
    result = await first.call(first.check('{"query": "x"}'), context())
    assert result.text == "x"
    result = await second.call(second.check("{}"), context())
    assert result.text == "called {}"
    assert not isinstance(second, SyncTool)
    assert isinstance(third, SyncTool)
    assert third.call_sync({}, context()).text == "blocked"
    with pytest.raises(ConfigError, match="no legal tool name"):
        Toolset([Foreign()], prefix="a b ")


def test_a_prefixed_clash_names_where_the_tool_comes_from() -> None:
    with pytest.raises(ConfigError, match=r"web_foreign.*test_toolset\.Foreign"):
        collect_tools([Toolset([Foreign()], prefix="web_"), Foreign("web_foreign")])


def test_filtering_keeps_the_order_and_refuses_unknown_names() -> None:
    tools = Toolset([search, lookup, Foreign()], name="all")

    assert names(tools.filtered(["foreign", "search"])) == ["search", "foreign"]
    assert len(tools.filtered([])) == 0
    assert names(tools.filtered("lookup")) == ["lookup"]
    assert repr(tools.filtered(["lookup"])) == "<toolset 'all' of 1>"
    with pytest.raises(ConfigError, match="no tool named 'x'; it has foreign, lookup"):
        tools.filtered(["x", "search"])
