import NighCore

/// The diagnosis of the transport. It lists the requirements, each built on the one before, up to the first that is
/// missing. If all are met, it continues with the transport's own state.
enum BluetoothDiagnosis {
    /// A requirement of the transport. Each one builds on the one before.
    private enum Step: String, CaseIterable {
        case kernel
        case bus = "dbus"
        case daemon = "bluetoothd"
        case permission
        case adapter
        case radio = "unblocked"
        case power = "powered"

        /// The step that a fault belongs to.
        init(of fault: BluetoothFault) {
            self =
                switch fault {
                case .noKernelSupport, .socket: .kernel
                case .noBus: .bus
                case .noDaemon, .daemon, .notOffered: .daemon
                case .notPermitted: .permission
                case .noAdapter, .noSuchAdapter: .adapter
                case .blocked: .radio
                case .switchedOff: .power
                }
        }

        func passed(_ adapter: BlueZObjects.Adapter?) -> Diagnosis {
            switch self {
            case .kernel: Diagnosis("kernel", .pass, "has Bluetooth", id: rawValue)
            case .bus: Diagnosis("D-Bus", .pass, "the system bus answers", id: rawValue)
            case .daemon: Diagnosis("bluetoothd", .pass, "running", id: rawValue)
            case .permission: Diagnosis("permission", .pass, "bluetoothd answers this user", id: rawValue)
            case .adapter:
                Diagnosis(subject(adapter), .pass, adapter.map { "\($0.address)" } ?? "there", id: rawValue)
            case .radio: Diagnosis("radio switch", .pass, "lets the adapter send", id: rawValue)
            case .power: Diagnosis("power", .pass, "on", id: rawValue)
            }
        }

        func failed(_ fault: BluetoothFault, _ adapter: BlueZObjects.Adapter?) -> Diagnosis {
            var line = passed(adapter)
            line.verdict = .fail
            line.finding = "\(fault.cause)"
            line.advice = fault.advice
            return line
        }

        private func subject(_ adapter: BlueZObjects.Adapter?) -> String {
            adapter.map { "adapter \($0.name)" } ?? "adapter"
        }
    }

    static func lines(of transport: BluetoothTransport, _ running: BluetoothTransport.Running) -> [Diagnosis]
    {
        switch running.bluez.availability {
        case .unknown:
            return [
                Step.kernel.passed(nil), Step.bus.passed(nil),
                Diagnosis(
                    "bluetoothd", .warn, "has not answered yet", advice: "`systemctl restart bluetooth`",
                    id: Step.daemon.rawValue, isPending: true),
            ]
        case .missing(let fault): return lines(upTo: fault, of: transport, running)
        case .adapter(let adapter):
            return Step.allCases.map { $0.passed(adapter) } + lines(of: transport, running, adapter)
        }
    }

    private static func lines(
        upTo fault: BluetoothFault, of transport: BluetoothTransport, _ running: BluetoothTransport.Running
    ) -> [Diagnosis] {
        let all = running.bluez.objects?.adaptersInOrder ?? []
        let adapter = all.first { $0.name == transport.options.adapter ?? $0.name }
        let last = Step(of: fault)
        let before = Step.allCases.prefix { $0 != last }
        return before.map { $0.passed(adapter) } + [last.failed(fault, adapter)]
    }

    private static func lines(
        of transport: BluetoothTransport, _ running: BluetoothTransport.Running,
        _ adapter: BlueZObjects.Adapter
    ) -> [Diagnosis] {
        var lines: [Diagnosis] = []
        let isListening = running.listening.listener != nil
        if let refusal = running.discoverability.refusal {
            let fault = BluetoothFault(refusal)
            lines.append(Diagnosis("discoverable", .warn, "refused: \(fault.cause)", advice: fault.advice))
        } else if adapter.isDiscoverable {
            lines.append(Diagnosis("discoverable", .pass, "yes"))
        } else {
            lines.append(
                Diagnosis(
                    "discoverable", .warn, "no: devices that are not paired do not find this one",
                    advice: transport.options.makesDiscoverable
                        ? "`bluetoothctl discoverable on`"
                        : "`bluetoothctl discoverable on`, or remove discoverable=no",
                    isPending: isListening && transport.options.makesDiscoverable))
        }
        if let error = running.listening.error {
            lines.append(Diagnosis("listening", .fail, "\(error.cause)", advice: error.advice))
        } else if let listener = running.listening.listener {
            lines.append(Diagnosis("listening", .pass, "on channel \(listener.channel)"))
        } else {
            lines.append(Diagnosis("listening", .pass, "not requested"))
        }
        if isListening { lines.append(record(of: running.registration)) }
        if running.search.service != nil {
            let counts = running.search.survey.counts
            lines.append(
                Diagnosis("devices", .pass, "\(counts.asked) asked, \(counts.found) sessions found"))
        } else {
            lines.append(Diagnosis("devices", .pass, "not browsing"))
        }
        lines.append(Diagnosis("pipes", .pass, "\(transport.pipes.count) open"))
        return lines
    }

    private static func record(of registration: ProfileRegistration) -> Diagnosis {
        let subject = "service record"
        if let failure = registration.failure {
            return Diagnosis(subject, .fail, "\(failure.cause)", advice: failure.advice)
        }
        if registration.isRegistered { return Diagnosis(subject, .pass, "others can read it") }
        return Diagnosis(
            subject, .warn, "not registered yet", advice: "`systemctl restart bluetooth`", isPending: true)
    }
}
