"""The one door for child processes: every program Garra starts is started here.

A child has an environment built for it, a process group and session of its own, limits, and an owner: it is killed
whole, and it does not outlive us.
"""
