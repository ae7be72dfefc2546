//! Facts of the machine that make two results comparable, or not.

use std::fs::read_to_string;

use yieldpoint_record::Machine;

/// Reads them. What the kernel does not tell is left empty.
#[must_use]
pub fn machine() -> Machine {
    let uname = rustix::system::uname();
    let text = |p: &str| {
        read_to_string(p)
            .ok()
            .map(|t| t.trim().to_owned())
            .filter(|t| !t.is_empty())
    };
    let cpuinfo = text("/proc/cpuinfo").unwrap_or_default();
    let meminfo = text("/proc/meminfo").unwrap_or_default();
    Machine {
        kernel: uname.release().to_string_lossy().into_owned(),
        os: text("/etc/os-release")
            .and_then(|t| field(&t, "PRETTY_NAME", '=').map(|v| v.trim_matches('"').to_owned()))
            .unwrap_or_default(),
        architecture: uname.machine().to_string_lossy().into_owned(),
        cpu: field(&cpuinfo, "model name", ':').unwrap_or_default(),
        cpus: u32::try_from(crate::plan::online_cpus().len()).unwrap_or(u32::MAX),
        memory_kib: field(&meminfo, "MemTotal", ':')
            .and_then(|v| v.split_whitespace().next()?.parse().ok())
            .unwrap_or(0),
        governor: text("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        virtualization: text("/sys/class/dmi/id/product_name").or_else(|| {
            cpuinfo
                .contains(" hypervisor")
                .then(|| "a hypervisor".to_owned())
        }),
        clock_source: text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    }
}

/// The first "name<separator>value" line of a text.
fn field(text: &str, name: &str, separator: char) -> Option<String> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim().to_owned())
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_first_field_of_that_name_counts() {
        let text = "model name\t: A CPU @ 3GHz\nmodel name : B\nflags: x";
        assert_eq!(
            super::field(text, "model name", ':').as_deref(),
            Some("A CPU @ 3GHz")
        );
        assert_eq!(super::field(text, "model", ':'), None);
    }
}
