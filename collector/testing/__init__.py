"""Simulated weeks of a whole deployment, to see an application's own numbers before it ships."""

from .fleet import Behaviour as Behaviour
from .fleet import Fleet as Fleet
from .fleet import FleetDevice as FleetDevice
