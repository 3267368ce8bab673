//! Traces to an OpenTelemetry collector over HTTP: a span for each call of a task.
//!
//! `OTEL_EXPORTER_OTLP_ENDPOINT` (or `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`) names the collector, as the OpenTelemetry
//! specification of exporters has it; without it nothing is sent.

use super::Layers;
use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::SpanExporter;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};

const COLLECTOR: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];

/// Traces in progress. Dropping this sends the rest.
pub struct Traces(SdkTracerProvider);

impl Drop for Traces {
    fn drop(&mut self) {
        // A missing collector must not prevent the end.
        let _ = self.0.shutdown();
    }
}

/// Whether the environment names a collector.
pub fn collector_is_named() -> bool {
    COLLECTOR.iter().any(|name| std::env::var_os(name).is_some())
}

/// Sends the spans of our own code, if a collector is named.
pub fn begin(layers: &mut Layers) -> Result<Option<Traces>, String> {
    if !collector_is_named() {
        return Ok(None);
    }
    // There may be one already, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = SpanExporter::builder().with_http().build();
    let exporter = exporter.map_err(|error| error.to_string())?;
    let provider = SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(Resource::builder().with_service_name("starbridge").build())
        .build();
    let ours = Targets::new().with_target("starbridge", LevelFilter::DEBUG);
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("starbridge"));
    layers.push(layer.with_filter(ours).boxed());
    Ok(Some(Traces(provider)))
}
