//! The programs that take part: found beside `yieldpoint`, asked who they are.

use std::path::{Path, PathBuf};

use yieldpoint_protocol::{Hello, Role};

use crate::describe::describe;

const CLIENT: &str = "yieldpoint-client-";
const TARGET: &str = "yieldpoint-target-";
const LAB: &str = "yieldpoint-lab";

/// A client or a target that answered.
#[derive(Clone, Debug)]
pub struct Program {
    /// its name in a matrix
    pub name: String,
    /// how it is started
    pub command: Vec<String>,
    /// who it says it is
    pub hello: Hello,
}

/// Why a program cannot take part.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{role} \"{name}\" ({}): {why}", command.join(" "))]
pub struct ProgramError {
    /// "client" or "target"
    pub role: &'static str,
    /// its name in a matrix
    pub name: String,
    /// how it was started
    pub command: Vec<String>,
    /// what, expected, got, fix
    pub why: String,
}

/// Every program of an installation.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// clients by name
    pub clients: Vec<Program>,
    /// targets by name
    pub targets: Vec<Program>,
    /// those that did not answer
    pub broken: Vec<ProgramError>,
    /// the lab program
    pub lab: PathBuf,
}

impl Programs {
    /// Looks for programs in `folder` and asks each for its description. A program that does not
    /// answer is kept in `broken`: it matters only to a matrix that wants it.
    #[must_use]
    pub fn find(folder: &Path) -> Self {
        let mut found = Self {
            lab: folder.join(LAB),
            ..Self::default()
        };
        let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
            .map(|entries| entries.flatten().map(|e| e.path()).collect())
            .unwrap_or_default();
        files.sort();
        let asked: Vec<(Role, String, Vec<String>)> = files
            .iter()
            .filter_map(|path| {
                let file = path.file_name()?.to_str()?;
                let command = vec![path.to_string_lossy().into_owned()];
                let client = file.strip_prefix(CLIENT).map(|name| (Role::Client, name));
                let target = file.strip_prefix(TARGET).map(|name| (Role::Target, name));
                let (role, name) = client.or(target)?;
                Some((role, name.to_owned(), command))
            })
            .collect();
        // All at once: each takes some milliseconds to start and says one line.
        let answers: Vec<_> = std::thread::scope(|scope| {
            let asking: Vec<_> = asked
                .iter()
                .map(|(role, _, command)| scope.spawn(|| describe(command, *role)))
                .collect();
            let lost = || Err("the thread that asked it panicked".to_owned());
            asking
                .into_iter()
                .map(|a| a.join().unwrap_or_else(|_| lost()))
                .collect()
        });
        for ((role, name, command), answer) in asked.into_iter().zip(answers) {
            found.keep(role, &name, command, answer);
        }
        found
    }

    /// Asks one program and keeps the answer. A client of the matrix replaces one of ours of the same name.
    pub fn ask(&mut self, role: Role, name: &str, command: Vec<String>) {
        let answer = describe(&command, role);
        self.keep(role, name, command, answer);
    }

    fn keep(
        &mut self,
        role: Role,
        name: &str,
        command: Vec<String>,
        answer: Result<Hello, String>,
    ) {
        let role_name = match role {
            Role::Client => "client",
            Role::Target => "target",
        };
        let list = match role {
            Role::Client => &mut self.clients,
            Role::Target => &mut self.targets,
        };
        match answer {
            Ok(hello) => {
                list.retain(|p| p.name != name);
                list.push(Program {
                    name: name.to_owned(),
                    command,
                    hello,
                });
            }
            Err(why) => {
                self.broken.push(ProgramError {
                    role: role_name,
                    name: name.to_owned(),
                    command,
                    why,
                });
            }
        }
    }

    /// The client of this name.
    #[must_use]
    pub fn client(&self, name: &str) -> Option<&Program> {
        self.clients.iter().find(|p| p.name == name)
    }
    /// The target of this name.
    #[must_use]
    pub fn target(&self, name: &str) -> Option<&Program> {
        self.targets.iter().find(|p| p.name == name)
    }
    /// Names that a matrix may use for `client`, those included that are there but do not answer.
    #[must_use]
    pub fn client_names(&self) -> Vec<String> {
        let broken = self
            .broken
            .iter()
            .filter(|b| b.role == "client")
            .map(|b| b.name.clone());
        self.clients
            .iter()
            .map(|p| p.name.clone())
            .chain(broken)
            .collect()
    }
}
