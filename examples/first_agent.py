from agentcore import ToolLoopAgent, tool


@tool(effects="none", replay="safe")
async def get_weather(city: str) -> str:
    """Current weather in a city.

    Args:
        city: Name of the city.
    """
    return f"Sunny in {city}, 24 degrees."


agent = ToolLoopAgent(
    "openai:gpt-5-mini", instructions="Answer briefly.", tools=[get_weather]
)

if __name__ == "__main__":
    result = agent.run_sync("Weather in Paris?")
    print(result.output or result.stop)
