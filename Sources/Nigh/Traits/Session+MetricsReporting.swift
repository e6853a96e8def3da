#if MetricsSupport
    import CoreMetrics
    import NighCore

    extension Session {
        /// Passes on all counts and measurements to the metrics backend of the program, now and after each interval,
        /// until the session is closed or the task is cancelled. Needs the trait `MetricsSupport`.
        ///
        /// A label is "nigh_" and the name of the ``Metric``, as in `nigh_bytes_sent`; its labels are dimensions.
        /// Counters and gauges of a peer are destroyed when the session forgets the peer.
        ///
        /// - Parameters:
        ///   - interval: The time between two reports.
        ///   - dimensions: Further dimensions, for a program with several sessions.
        public nonisolated(nonsending) func reportMetrics(
            every interval: Duration = .seconds(10), dimensions: [(String, String)] = []
        ) async {
            await withTaskGroup { group in
                group.addTask {
                    var report = MetricsReport(dimensions: dimensions)
                    repeat {
                        report.update(with: await self.metrics())
                    } while (try? await self.clock.sleep(for: interval)) != nil
                    report.end()
                }
                group.addTask { for await _ in self.peerLists {} }
                await group.next()
                group.cancelAll()
            }
        }
    }

    /// The counters and gauges that one session has in the metrics backend.
    private struct MetricsReport {
        private struct Key: Hashable {
            let name: String
            let labels: [String: String]
        }

        private enum Instrument {
            /// With the value that was reported last.
            case counter(Counter, Int64)
            case gauge(Gauge)
        }

        private let dimensions: [(String, String)]
        private var instruments: [Key: Instrument] = [:]

        init(dimensions: [(String, String)]) { self.dimensions = dimensions }

        mutating func update(with metrics: [Metric]) {
            var gone = Set(instruments.keys)
            for metric in metrics {
                let key = Key(name: metric.name, labels: metric.labels)
                gone.remove(key)
                switch instruments[key] ?? instrument(of: metric) {
                case .counter(let counter, let last):
                    let value = Int64(metric.value)
                    // A peer's counters begin anew with each conversation.
                    let growth = value >= last ? value - last : value
                    if growth > 0 { counter.increment(by: growth) }
                    instruments[key] = .counter(counter, value)
                case .gauge(let gauge):
                    gauge.record(metric.value)
                    instruments[key] = .gauge(gauge)
                }
            }
            for key in gone { destroy(key) }
        }

        /// Destroys all of them.
        mutating func end() { for key in instruments.keys { destroy(key) } }

        private func instrument(of metric: Metric) -> Instrument {
            let label = "nigh_\(metric.name)"
            let all = dimensions + metric.labels.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
            return metric.isCounter
                ? .counter(Counter(label: label, dimensions: all), 0)
                : .gauge(Gauge(label: label, dimensions: all))
        }

        private mutating func destroy(_ key: Key) {
            switch instruments.removeValue(forKey: key) {
            case .counter(let counter, _): counter.destroy()
            case .gauge(let gauge): gauge.destroy()
            case nil: break
            }
        }
    }
#endif
