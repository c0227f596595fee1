"""What all tests share: no clock decides them."""

from hypothesis import HealthCheck, settings

# An example may take as long as a busy machine needs.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")
