//! A pooler in transaction mode before a database.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(30);

/// It ends with the test.
pub struct Pooler {
    child: Child,
    pub port: u16,
    _folder: TempDir,
}

impl Pooler {
    /// Two connections to the database for all clients.
    pub fn before(database: u16) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let free = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let path = folder.path();
        std::fs::write(path.join("users"), "\"shop\" \"\"\n").unwrap();
        let users = path.join("users").display().to_string();
        let settings = format!(
            "[databases]\n* = host=127.0.0.1 port={database}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = trust\nauth_file = {users}\npool_mode = transaction\ndefault_pool_size = 2\n"
        );
        std::fs::write(path.join("settings.ini"), settings).unwrap();
        // It gives up the rights of root before it reads them.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = Command::new(std::env::var_os("STARBRIDGE_POOLER").unwrap());
        if std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0) {
            command.args(["-u", "postgres"]);
        }
        let out = std::fs::File::create(path.join("log")).unwrap();
        command.arg(path.join("settings.ini")).stdin(Stdio::null());
        let child = command.stdout(out.try_clone().unwrap()).stderr(out).spawn().unwrap();
        let mut pooler = Self {
            child,
            port,
            _folder: folder,
        };
        pooler.wait();
        pooler
    }

    #[expect(clippy::disallowed_methods, reason = "it does not say when it listens")]
    fn wait(&mut self) {
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).is_err() {
            assert!(Instant::now() < end, "the pooler does not listen");
            assert!(self.child.try_wait().unwrap().is_none(), "the pooler has ended");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
