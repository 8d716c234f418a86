"""manager: the daemon, without HTTP or command line. It sizes crews and does background work."""
