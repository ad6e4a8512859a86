"""`python -m perihelion.host`: started by the server, with a socket as standard input."""

from perihelion.host._server import main

if __name__ == "__main__":
    main()
