"""The sandbox, checked against interface.md over real sockets."""
