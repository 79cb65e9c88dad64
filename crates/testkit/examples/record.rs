//! Records the transcript of a real kube-apiserver: `record NAMESPACE > transcript`, with `KUBECONFIG` set.
//!
//! The namespace must not exist, the custom resources of the product must be installed, and no controller manager may
//! run: its writes would come between the steps. `--model` runs the model instead, for a look at where the two differ.

use ferrvault_testkit::{ApiServer, script};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let argument = std::env::args().nth(1).ok_or("the name of a namespace that does not exist, or --model")?;
    let (client, namespace) = if argument == "--model" {
        (ApiServer::default().client_as("script"), "conformance".to_owned())
    } else {
        (kube::Client::try_default().await?, argument)
    };
    for line in script::run(&client, &namespace).await? {
        println!("{line}");
    }
    Ok(())
}
