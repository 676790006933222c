"""The executor: carries out the controller's commands on real workers, or on modelled ones behind real messages."""
