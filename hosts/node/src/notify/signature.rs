//! The signature of a webhook.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use starbridge_flow::hex;
use starbridge_flow::time::Timestamp;

/// The value of `Starbridge-Signature`: `t=<seconds since 1970>,v1=<HMAC-SHA256 of "t.body", in hexadecimal digits>`.
/// A receiver should refuse a `t` that is minutes old, so that the message can't be replayed later.
pub fn signature(secret: &str, now: Timestamp, body: &str) -> String {
    let seconds = now.0.div_euclid(1_000);
    let mut signed = format!("t={seconds},v1=");
    // A key may have any length.
    if let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) {
        mac.update(format!("{seconds}.").as_bytes());
        mac.update(body.as_bytes());
        signed.push_str(&hex::encode(&mac.finalize().into_bytes()));
    }
    signed
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `printf '1704067200.{"a":1}' | openssl dgst -sha256 -hmac open-sesame`
    #[test]
    fn signature_is_what_others_compute() {
        assert_eq!(
            signature("open-sesame", Timestamp(1_704_067_200_999), "{\"a\":1}"),
            "t=1704067200,v1=b88ad2a46c20f8f57003a5d8bc04def7048dd55962cb53124eafd3113af5b110"
        );
    }
}
