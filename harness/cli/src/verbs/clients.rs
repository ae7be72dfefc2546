//! `yieldpoint clients`: who can make load and who can serve it.

use std::process::ExitCode;

use anyhow::Context;
use console::style;
use yieldpoint_matrix::describe_clients;
use yieldpoint_protocol::Role;
use yieldpoint_run::Program;

use crate::args::ClientsArgs;
use crate::installation::programs;

/// Lists them.
pub fn clients(args: &ClientsArgs) -> anyhow::Result<ExitCode> {
    let mut found = programs()?;
    if let Some(path) = &args.matrix {
        let shown = path.display().to_string();
        let text = std::fs::read_to_string(path).with_context(|| format!("matrix \"{shown}\""))?;
        let clients = describe_clients(&text, &shown)
            .map_err(|e| anyhow::anyhow!("{}", e.render(console::colors_enabled_stderr())))?;
        for (name, how) in clients {
            found.ask(Role::Client, &name, how.command);
        }
    }
    let all = || found.clients.iter().chain(&found.targets);
    if args.json {
        for program in all() {
            println!("{}", serde_json::to_string(&program.hello)?);
        }
    } else {
        println!("{}", style("clients").bold());
        found.clients.iter().for_each(show);
        println!("{}", style("targets").bold());
        found.targets.iter().for_each(show);
    }
    for broken in &found.broken {
        eprintln!("{} {broken}", style("broken:").red().for_stderr());
    }
    Ok(ExitCode::SUCCESS)
}

fn show(program: &Program) {
    let hello = &program.hello;
    println!("  {:<12} {}", style(&program.name).cyan(), hello.about);
    if !hello.library.is_empty() {
        println!("  {:<12} library: {}", "", hello.library);
    }
    let limits: Vec<_> = hello
        .limits
        .iter()
        .map(|(k, v)| format!("{k} ≤ {v}"))
        .collect();
    if !limits.is_empty() {
        println!("  {:<12} limits: {}", "", limits.join(", "));
    }
    let prefix = match hello.role {
        Role::Client => format!("options.{}.", program.name),
        Role::Target => "target.".to_owned(),
    };
    for knob in &hello.knobs {
        let default = knob
            .default_value()
            .map_or_else(|| "unset".into(), |v| v.to_string());
        println!(
            "  {:<12} {prefix}{} = {default}  {}",
            "",
            knob.name,
            style(&knob.doc).dim()
        );
    }
}
