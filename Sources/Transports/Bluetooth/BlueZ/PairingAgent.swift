import NighCore
import NighUV

/// bluetoothd's agent for this program: it answers when a device wants to pair. It exists only if the program asked for
/// it.
///
/// Loop only.
final class PairingAgent {
    private static let path = "/nigh/agent"
    private static let manager = "org.bluez.AgentManager1"

    private let bluez: BlueZ
    private let loop: UVEventLoop
    private let pairing: BluetoothPairing
    private var object: BusObject?
    private var generation: Int?
    /// The request that a person is being asked about.
    private var pending: (number: Int, request: BusRequest)?
    private var count = 0

    init(_ bluez: BlueZ, _ pairing: BluetoothPairing, on loop: UVEventLoop) {
        self.bluez = bluez
        self.pairing = pairing
        self.loop = loop
    }

    /// Registers the agent when bluetoothd has restarted or has become available.
    func availabilityChanged() {
        guard bluez.availability.adapter != nil, generation != bluez.generation else { return }
        object = bluez.export(at: Self.path) { [weak self] in self?.called($0) }
        guard object != nil else { return }
        generation = bluez.generation
        let ability = pairing.comparesDigits ? "DisplayYesNo" : "NoInputNoOutput"
        bluez.call("/org/bluez", Self.manager, "RegisterAgent", [.path(Self.path), .text(ability)])
        bluez.call("/org/bluez", Self.manager, "RequestDefaultAgent", [.path(Self.path)])
    }

    /// Stops answering requests.
    func stop() {
        pending = nil
        object = nil
    }

    private func called(_ request: BusRequest) {
        guard request.interface == "org.bluez.Agent1" else { return }
        switch request.member {
        case "Release":
            generation = nil
            request.answer()
        case "Cancel":
            pending = nil
            request.answer()
        case "AuthorizeService", "RequestAuthorization": requestDecision(request, digits: nil)
        case "RequestConfirmation":
            guard request.values.count == 2, let number = request.values[1].integer else { return }
            let text = String(number)
            requestDecision(request, digits: String(repeating: "0", count: max(0, 6 - text.count)) + text)
        default: break
        }
    }

    private func requestDecision(_ request: BusRequest, digits: String?) {
        guard let path = request.values.first?.text else { return }
        guard pending == nil else {
            return request.refuse("org.bluez.Error.Rejected", "another pairing is in progress")
        }
        count += 1
        let number = count
        pending = (number, request)
        let device = bluez.objects?.devices[path]?.address.description ?? path
        let agent = LoopBound(WeakReference(self), on: loop)
        pairing.decide(BluetoothPairing.Request(device: device, digits: digits)) { isAccepted in
            agent.execute { $0.object?.answered(number, isAccepted) }
        }
    }

    private func answered(_ number: Int, _ isAccepted: Bool) {
        guard let pending, pending.number == number else { return }
        self.pending = nil
        guard !isAccepted else { return pending.request.answer() }
        pending.request.refuse("org.bluez.Error.Rejected", "the person declined")
    }
}
