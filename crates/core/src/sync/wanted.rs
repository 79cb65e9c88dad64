//! From FerrVault's answer to the content the target shall have, or the guard that refuses it.
//!
//! Every guard here keeps the target's last good content: none of them is followed by a write.

use ferrvault_api::{FerrVaultSecret, Reason};

use crate::content::{Answer, Content};
use crate::refusal::Refusal;
use crate::status::named;
use crate::sync::Fate;
use crate::transform;

/// What decides about an answer besides the answer itself.
#[derive(Clone, Copy, Debug)]
pub struct WantedQuestion<'a> {
    /// The resource, for its transforms and the names in messages.
    pub resource: &'a FerrVaultSecret,
    /// What becomes of the target where the answer is refused.
    pub fate: Fate<'a>,
    /// The key that must not get lost, when the target is the connection's own token Secret.
    pub token_key: Option<&'a str>,
}

/// The content the target shall have after `answer`.
pub fn wanted(question: WantedQuestion<'_>, answer: Answer) -> Result<Content, Refusal> {
    let WantedQuestion { resource, fate, token_key } = question;
    keys_missing(resource, fate, &answer)?;
    nothing_found(resource, fate, &answer.content)?;
    let content = transform::apply(&resource.spec.transforms, answer.content)
        .map_err(|error| fate.told_in(Refusal::new(Reason::TransformError, format!("spec.{error}"))))?;
    nothing_found(resource, fate, &content)?;
    would_be_refused(&content).map_err(|refusal| fate.told_in(refusal))?;
    token_key_lost(resource, token_key, &content)?;
    Ok(content)
}

/// Found before the write, because here the message can say what to change.
fn would_be_refused(content: &Content) -> Result<(), Refusal> {
    let violations: Vec<String> = content.check_for_secret().iter().map(ToString::to_string).collect();
    if violations.is_empty() {
        return Ok(());
    }
    Err(Refusal::new(Reason::SecretWriteFailed, violations.join("; ")))
}

/// A part of an answer is never written: pods would start with half of what they need.
fn keys_missing(resource: &FerrVaultSecret, fate: Fate<'_>, answer: &Answer) -> Result<(), Refusal> {
    if answer.missing.is_empty() {
        return Ok(());
    }
    let (vault, names) = (&resource.spec.vault, named(&answer.missing));
    let message = format!(
        "vault {vault:?} does not have: {names}; {fate}; add what is missing, or take it off spec.selector.names"
    );
    Err(Refusal { missing_keys: answer.missing.clone(), ..Refusal::new(Reason::MissingKeys, message) })
}

fn nothing_found(resource: &FerrVaultSecret, fate: Fate<'_>, content: &Content) -> Result<(), Refusal> {
    if !content.0.is_empty() {
        return Ok(());
    }
    let vault = &resource.spec.vault;
    let message = format!("vault {vault:?} gave no key at all; {fate}; fill the vault");
    Err(Refusal::new(Reason::EmptyAnswer, message))
}

/// Writing the token Secret without its token would lock the connection out for good.
fn token_key_lost(resource: &FerrVaultSecret, token_key: Option<&str>, content: &Content) -> Result<(), Refusal> {
    let Some(key) = token_key else { return Ok(()) };
    // Whitespace around a token is trimmed when it is read, so a value of nothing else is no token either.
    if content.0.get(key).is_some_and(|value| !value.expose().trim_ascii().is_empty()) {
        return Ok(());
    }
    Err(Refusal::new(
        Reason::TokenKeyMissing,
        format!(
            "Secret {:?} is the connection's own token Secret and the answer has no key {key:?}; it is left alone, \
             since writing it would take the connection's token away. Put the token into the vault under {key:?} or \
             choose another spec.target.name",
            resource.target_name()
        ),
    ))
}

#[cfg(test)]
mod tests;
