import CoreMetrics
import Testing

@testable import GatewayTelemetry

@Suite struct ExpositionTests {
    private static let families = [
        MetricFamily(
            "posts", .counter, labels: [.init("kind", valuesMax: 2)],
            "Posts, \"quoted\" \\ and\nsplit."),
        MetricFamily("load_ratio", .gauge, unit: "ratio", "Load."),
        MetricFamily("wait_seconds", .histogram(bounds: [0.1, 1]), unit: "seconds", "Waits."),
        MetricFamily("build", .info, labels: [.init("version", valuesMax: 1)], "What runs."),
    ]

    private func registry() -> MetricsRegistry {
        let registry = MetricsRegistry(Self.families)
        Counter(label: "posts", dimensions: [("kind", "a\"\\\n")], factory: registry)
            .increment(by: 3)
        Meter(label: "load_ratio", dimensions: [], factory: registry).set(0.5)
        let waits = CoreMetrics.Recorder(
            label: "wait_seconds", dimensions: [], aggregate: true, factory: registry)
        for value in [0.05, 0.1, 0.5, 0.5, 7] { waits.record(value) }
        return registry
    }

    @Test func `Prometheus text is as its format says`() {
        let page = registry().page(.prometheus) {
            $0.info(Self.families[3], ["1.0"])
        }
        #expect(
            page == """
                # HELP posts_total Posts, "quoted" \\\\ and\\nsplit.
                # TYPE posts_total counter
                posts_total{kind="a\\"\\\\\\n"} 3
                # HELP load_ratio Load.
                # TYPE load_ratio gauge
                load_ratio 0.5
                # HELP wait_seconds Waits.
                # TYPE wait_seconds histogram
                wait_seconds_bucket{le="0.1"} 2
                wait_seconds_bucket{le="1"} 4
                wait_seconds_bucket{le="+Inf"} 5
                wait_seconds_sum 8.15
                wait_seconds_count 5
                # HELP build_info What runs.
                # TYPE build_info gauge
                build_info{version="1.0"} 1

                """)
    }

    @Test func `OpenMetrics names families, units and bounds its own way, and ends`() {
        let page = registry().page(.openMetrics) {
            $0.info(Self.families[3], ["1.0"])
        }
        #expect(
            page == """
                # TYPE posts counter
                # HELP posts Posts, \\"quoted\\" \\\\ and\\nsplit.
                posts_total{kind="a\\"\\\\\\n"} 3
                # TYPE load_ratio gauge
                # UNIT load_ratio ratio
                # HELP load_ratio Load.
                load_ratio 0.5
                # TYPE wait_seconds histogram
                # UNIT wait_seconds seconds
                # HELP wait_seconds Waits.
                wait_seconds_bucket{le="0.1"} 2
                wait_seconds_bucket{le="1.0"} 4
                wait_seconds_bucket{le="+Inf"} 5
                wait_seconds_sum 8.15
                wait_seconds_count 5
                # TYPE build info
                # HELP build What runs.
                build_info{version="1.0"} 1
                # EOF

                """)
    }

    @Test func `a label has a bounded number of values`() {
        let registry = MetricsRegistry(Self.families)
        for kind in ["a", "b", "c", "d", "a", "c"] {
            Counter(label: "posts", dimensions: [("kind", kind)], factory: registry).increment()
        }
        let samples = registry.page(.prometheus).split(separator: "\n")
            .filter { $0.hasPrefix("posts_total") }
        #expect(
            samples == [
                "posts_total{kind=\"a\"} 2", "posts_total{kind=\"b\"} 1",
                "posts_total{kind=\"other\"} 3",
            ])
    }

    @Test func `samples beyond the most series of a family are left out`() {
        let page = MetricsRegistry(Self.families).page(.prometheus) {
            for kind in 0..<10 { $0.count(Self.families[0], String(kind), is: 1) }
        }
        #expect(page.split(separator: "\n").count { $0.hasPrefix("posts_total") } == 3)
    }

    @Test func `what is not declared is not on the page, whoever counts it`() {
        let registry = MetricsRegistry(Self.families)
        Counter(label: "unknown", dimensions: [("kind", "a")], factory: registry).increment()
        CoreMetrics.Recorder(label: "posts", dimensions: [], aggregate: true, factory: registry)
            .record(1)
        Counter(label: "posts", dimensions: [("colour", "red")], factory: registry).increment()
        let page = registry.page(.prometheus)
        #expect(!page.contains("unknown") && !page.contains("red"))
        #expect(page.contains("posts_total{kind=\"\"} 1\n"))
    }

    @Test func `no observation that is no number spoils a sum`() {
        let registry = MetricsRegistry(Self.families)
        let waits = CoreMetrics.Recorder(
            label: "wait_seconds", dimensions: [], aggregate: true, factory: registry)
        waits.record(Double.nan)
        waits.record(Double.infinity)
        waits.record(0.25)
        #expect(registry.page(.prometheus).contains("wait_seconds_sum 0.25\n"))
    }
}

@Suite struct ExpositionFormatTests {
    @Test(
        arguments: [
            ([], .prometheus),
            (["*/*"], .prometheus),
            (["text/plain"], .prometheus),
            (["application/openmetrics-text"], .openMetrics),
            (["application/openmetrics-text; version=\"1.0.0\""], .openMetrics),
            (["application/openmetrics-text;version=0.0.1"], .prometheus),
            (
                ["application/openmetrics-text;version=1.0.0;q=0.2,text/plain;version=0.0.4;q=0.3"],
                .prometheus
            ),
            (
                ["text/plain;version=0.0.4;q=0.3", "application/openmetrics-text;version=1.0.0"],
                .openMetrics
            ),
            (["application/openmetrics-text;q=0"], .prometheus),
            (["application/openmetrics-text;q=nonsense, ;;,,"], .prometheus),
            (
                [
                    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
                        + "application/openmetrics-text;version=0.0.1;q=0.5,"
                        + "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
                        + "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
                ], .openMetrics
            ),
        ] as [([String], ExpositionFormat)])
    func `a reader gets what it prefers`(accept: [String], format: ExpositionFormat) {
        #expect(ExpositionFormat(accept: accept) == format)
    }
}
