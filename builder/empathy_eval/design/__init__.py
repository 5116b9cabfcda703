"""All that is decided before anybody is asked: taxonomy, scenarios, the 2 x 2, configuration, plans, and the data contract."""
