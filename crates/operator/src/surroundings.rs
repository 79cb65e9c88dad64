//! What the process is told by where it runs instead of by flags: the pod it is, and the namespace it lives in.

use std::env;
use std::fs;

/// Where the kernel tells the name of the machine, which in a pod is the pod's.
const HOST_NAME: &str = "/proc/sys/kernel/hostname";

/// Where the process runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Surroundings {
    /// The name of the pod, or of the machine outside a cluster.
    pub pod: String,
    /// The namespace with the lease and the operator key, if it is told by `POD_NAMESPACE`.
    pub namespace: Option<String>,
}

impl Surroundings {
    /// Looks around.
    pub fn look() -> Self {
        Self::from(|name| env::var(name).ok(), || fs::read_to_string(HOST_NAME).ok())
    }

    fn from(variable: impl Fn(&str) -> Option<String>, host_name: impl Fn() -> Option<String>) -> Self {
        let told = |text: Option<String>| text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
        let pod = told(variable("POD_NAME")).or_else(|| told(variable("HOSTNAME"))).or_else(|| told(host_name()));
        Self { pod: pod.unwrap_or_else(|| "ferrvault-operator".to_owned()), namespace: told(variable("POD_NAMESPACE")) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pod_is_told_by_the_first_source_that_says_anything() {
        for (variables, host_name, pod) in [
            (&[("POD_NAME", "op-1"), ("HOSTNAME", "node")][..], Some("kernel\n"), "op-1"),
            (&[("POD_NAME", " "), ("HOSTNAME", "node")], Some("kernel\n"), "node"),
            (&[], Some("kernel\n"), "kernel"),
            (&[], None, "ferrvault-operator"),
        ] {
            let variable =
                |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            assert_eq!(Surroundings::from(variable, || host_name.map(str::to_owned)).pod, pod);
        }
    }

    #[test]
    fn an_empty_namespace_is_none() {
        let from = |value: &'static str| Surroundings::from(move |_| Some(value.to_owned()), || None).namespace;
        assert_eq!(from(""), None);
        assert_eq!(from("ferrvault-system"), Some("ferrvault-system".to_owned()));
    }
}
