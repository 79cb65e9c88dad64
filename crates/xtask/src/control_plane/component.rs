//! The programs of a control plane, and what each one is built from.

/// A program of the control plane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Component {
    /// The store.
    Etcd,
    /// The API server.
    KubeApiserver,
    /// The command line client.
    Kubectl,
    /// Deployments become pods, owners take their objects with them.
    KubeControllerManager,
    /// Pods get a node.
    KubeScheduler,
    /// The chart is installed with it.
    Helm,
    /// Pods run without a machine.
    Kwok,
}

impl Component {
    /// All of them, in the order in which they are built: what is needed for the least comes first.
    pub const ALL: [Self; 7] = [
        Self::Etcd,
        Self::KubeApiserver,
        Self::Kubectl,
        Self::KubeControllerManager,
        Self::KubeScheduler,
        Self::Helm,
        Self::Kwok,
    ];

    /// The name of its binary.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::KubeApiserver => "kube-apiserver",
            Self::Kubectl => "kubectl",
            Self::KubeControllerManager => "kube-controller-manager",
            Self::KubeScheduler => "kube-scheduler",
            Self::Helm => "helm",
            Self::Kwok => "kwok",
        }
    }

    /// Whether there is no control plane at all without it. These three are also what an envtest folder holds.
    pub const fn required(self) -> bool {
        matches!(self, Self::Etcd | Self::KubeApiserver | Self::Kubectl)
    }

    /// The Go package that its binary is.
    pub(super) const fn package(self) -> &'static str {
        match self {
            Self::Etcd => "go.etcd.io/etcd/server/v3",
            Self::KubeApiserver => "k8s.io/kubernetes/cmd/kube-apiserver",
            Self::Kubectl => "k8s.io/kubernetes/cmd/kubectl",
            Self::KubeControllerManager => "k8s.io/kubernetes/cmd/kube-controller-manager",
            Self::KubeScheduler => "k8s.io/kubernetes/cmd/kube-scheduler",
            Self::Helm => "helm.sh/helm/v3/cmd/helm",
            Self::Kwok => "sigs.k8s.io/kwok/cmd/kwok",
        }
    }

    /// The folder of its Go module below `tools/control-plane`. kwok does not compile against the libraries of the
    /// others and has one of its own.
    pub(super) const fn module(self) -> &'static str {
        match self {
            Self::Kwok => "kwok",
            _ => ".",
        }
    }
}

impl std::fmt::Display for Component {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
