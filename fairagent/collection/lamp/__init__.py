"""LaMP: questions of users, each with a profile of what the user has written before."""

from fairagent.collection.lamp.load import LIMIT, Item, Lamp, LampQuestion, load_lamp
from fairagent.collection.lamp.tasks import TASKS, LampTask, parse_task

__all__ = ["LIMIT", "TASKS", "Item", "Lamp", "LampQuestion", "LampTask", "load_lamp", "parse_task"]
