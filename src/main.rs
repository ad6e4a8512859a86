use clap::Parser;
use perihelion::servers::Bundled;

#[derive(Parser)]
#[command(name = "perihelion", version, about)]
enum Command {
    /// Serves a bundled MCP server over standard input and output.
    #[command(subcommand)]
    Mcp(Bundled),
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    tracing_subscriber::fmt().with_writer(std::io::stderr).init();
    let Command::Mcp(server) = Command::parse();
    Ok(server.run().await?)
}
