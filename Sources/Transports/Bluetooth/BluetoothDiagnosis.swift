import NighCore

/// What a person should know about Bluetooth here and now, in the order it can break.
enum BluetoothDiagnosis {
    static func lines(of transport: BluetoothTransport, _ running: BluetoothTransport.Running) -> [Diagnosis]
    {
        switch running.bluez.ground {
        case .unknown: return [Diagnosis("bluetoothd", .warn, "has not answered yet")]
        case .missing(let fault):
            return [Diagnosis("bluetooth", .fail, "\(fault.cause)", advice: fault.advice)]
        case .adapter(let adapter): return lines(of: transport, running, adapter)
        }
    }

    private static func lines(
        of transport: BluetoothTransport, _ running: BluetoothTransport.Running,
        _ adapter: BlueZObjects.Adapter
    ) -> [Diagnosis] {
        var lines = [
            Diagnosis("bluetoothd", .pass, "running"),
            Diagnosis("adapter \(adapter.name)", .pass, "\(adapter.address), powered on"),
        ]
        if let refusal = running.discoverability.refusal {
            let fault = BluetoothFault(refusal)
            lines.append(Diagnosis("discoverable", .warn, "refused: \(fault.cause)", advice: fault.advice))
        } else if adapter.isDiscoverable {
            lines.append(Diagnosis("discoverable", .pass, "yes"))
        } else {
            lines.append(
                Diagnosis(
                    "discoverable", .warn, "no: strangers' devices do not find this one",
                    advice: "`bluetoothctl discoverable on`"))
        }
        if let fault = transport.listenFault {
            lines.append(Diagnosis("listening", .fail, "\(fault.cause)", advice: fault.advice))
        } else if let listener = transport.listener {
            lines.append(Diagnosis("listening", .pass, "on channel \(listener.channel)"))
        } else {
            lines.append(Diagnosis("listening", .pass, "not asked for"))
        }
        if running.search.service != nil {
            let counts = running.search.survey.counts
            lines.append(
                Diagnosis("devices", .pass, "\(counts.asked) asked, \(counts.found) sessions found"))
        } else {
            lines.append(Diagnosis("devices", .pass, "not looked for"))
        }
        lines.append(Diagnosis("pipes", .pass, "\(transport.pipes.count) open"))
        return lines
    }
}
