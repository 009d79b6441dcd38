"""The sandbox, held against interface.md over real sockets."""
