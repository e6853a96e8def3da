#if LoggingSupport
    import Logging

    extension SessionSettings {
        /// Writes a line to the logger for each event and each question that was not answered, as ``log`` describes it,
        /// with the facts as metadata. Needs the trait `LoggingSupport`.
        public mutating func log(to logger: Logger) {
            log = { level, message, facts in
                logger.log(
                    level: Logger.Level(level), "\(message)", metadata: facts.mapValues { .string($0) },
                    source: "Nigh")
            }
        }
    }

    extension Logger.Level {
        fileprivate init(_ level: LogLevel) {
            self =
                switch level {
                case .trace: .trace
                case .debug: .debug
                case .info: .info
                case .notice: .notice
                case .warning: .warning
                case .error: .error
                case .critical: .critical
                }
        }
    }
#endif
