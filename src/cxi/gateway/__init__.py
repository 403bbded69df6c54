"""How do agents reach it with no change of code?"""

from cxi.gateway.control import ControlError, LiveGateway, control, live_gateways
from cxi.gateway.method import render_table
from cxi.gateway.service import serve

__all__ = ["ControlError", "LiveGateway", "control", "live_gateways", "render_table", "serve"]
