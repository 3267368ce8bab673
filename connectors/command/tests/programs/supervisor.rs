//! A program that does nothing but supervise another.

fn main() -> std::process::ExitCode {
    starbridge_connector_command::supervise()
}
