//! Forms that come twice: what they ask for is done once.
//!
//! A double click sends a form twice, and so does somebody who sends it again because the answer was lost. The forms of each
//! page have a number. The same form with the same number and the same fields is done once; whoever sends it again is led
//! to where it led before.

use sha2::{Digest, Sha256};
use starbridge_flow::hex;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;

/// So many forms are remembered: the latest.
const MOST: usize = 4_096;

/// What tells a form from all others.
type Mark = [u8; 32];
/// Where a form led; `None` while it is being done.
type Outcome = watch::Receiver<Option<String>>;

/// The forms that were sent lately.
#[derive(Clone, Default)]
pub struct SentForms(Arc<Mutex<Known>>);

#[derive(Default)]
struct Known {
    outcomes: HashMap<Mark, Outcome>,
    /// In the order in which they came.
    order: VecDeque<Mark>,
}

/// A form that is being done. One that is dropped before it led anywhere can be sent again.
pub struct FormClaim {
    forms: SentForms,
    mark: Mark,
    outcome: watch::Sender<Option<String>>,
}

impl SentForms {
    /// The right to do a form of this page, given by its address, or where it led before. One that is being done is waited
    /// for.
    pub async fn claim(&self, page: &str, fields: &[(String, String)]) -> Result<FormClaim, String> {
        let mark = mark(page, fields);
        loop {
            let mut other = match self.enter(mark) {
                Ok(claim) => return Ok(claim),
                Err(other) => other,
            };
            // If the other was given up, this one is the first.
            if let Ok(to) = other.wait_for(Option::is_some).await
                && let Some(to) = to.as_ref()
            {
                return Err(to.clone());
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn enter(&self, mark: Mark) -> Result<FormClaim, Outcome> {
        let mut known = self.lock();
        if let Some(other) = known.outcomes.get(&mark) {
            return Err(other.clone());
        }
        while known.order.len() >= MOST {
            if let Some(oldest) = known.order.pop_front() {
                known.outcomes.remove(&oldest);
            }
        }
        let (outcome, of) = watch::channel(None);
        known.outcomes.insert(mark, of);
        known.order.push_back(mark);
        drop(known);
        let forms = self.clone();
        Ok(FormClaim { forms, mark, outcome })
    }
}

impl FormClaim {
    /// The form is done, and led there.
    pub fn led(&self, to: &str) {
        self.outcome.send_replace(Some(to.to_owned()));
    }

    /// A key that the same form has whenever it is sent, also to another process.
    pub fn once_key(&self) -> String {
        let half = self.mark.get(..16).unwrap_or_default();
        format!("console-{}", hex::encode(half))
    }
}

impl Drop for FormClaim {
    fn drop(&mut self) {
        if self.outcome.borrow().is_none() {
            let mut known = self.forms.lock();
            known.outcomes.remove(&self.mark);
            known.order.retain(|mark| *mark != self.mark);
        }
    }
}

/// Each part is counted with its length, so that none can be taken for a part of another.
fn mark(page: &str, fields: &[(String, String)]) -> Mark {
    let pairs = fields.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]);
    let parts = std::iter::once(page).chain(pairs);
    let whole = parts.fold(Sha256::new(), |whole, part| {
        whole.chain_update(part.len().to_be_bytes()).chain_update(part)
    });
    whole.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(input: &str) -> Vec<(String, String)> {
        let pairs = [("once", "1"), ("input", input)];
        pairs.map(|(key, value)| (key.to_owned(), value.to_owned())).to_vec()
    }

    #[tokio::test]
    async fn same_form_is_done_once_and_another_by_itself() {
        let forms = SentForms::default();
        let first = forms.claim("/start", &fields("{}")).await.ok().unwrap();
        let again = tokio::spawn({
            let forms = forms.clone();
            async move { forms.claim("/start", &fields("{}")).await.err() }
        });
        tokio::task::yield_now().await;
        let other = forms.claim("/start", &fields("[]")).await.ok().unwrap();
        assert_ne!(first.once_key(), other.once_key());
        first.led("/there");
        assert_eq!(again.await.unwrap().as_deref(), Some("/there"));
        drop(first);
        assert_eq!(
            forms.claim("/start", &fields("{}")).await.err().as_deref(),
            Some("/there")
        );
    }

    #[tokio::test]
    async fn form_that_led_nowhere_can_be_sent_again() {
        let forms = SentForms::default();
        let refused = forms.claim("/start", &fields("{}")).await.ok().unwrap();
        let waits = tokio::spawn({
            let forms = forms.clone();
            async move { forms.claim("/start", &fields("{}")).await.is_ok() }
        });
        tokio::task::yield_now().await;
        drop(refused);
        assert!(waits.await.unwrap());
    }

    #[tokio::test]
    async fn only_the_latest_are_remembered() {
        let forms = SentForms::default();
        for number in 0..MOST + 10 {
            let claim = forms.claim("/start", &fields(&number.to_string())).await;
            claim.ok().unwrap().led("/there");
        }
        assert_eq!(forms.lock().outcomes.len(), MOST);
        assert!(forms.claim("/start", &fields("0")).await.is_ok());
    }
}
