import NighCore

/// Options of the transport `bluetooth`.
public struct BluetoothOptions: Sendable {
    /// The adapter to use, such as `hci1`. Nil means the first that is switched on.
    public var adapter: String?
    /// Whether to make this machine discoverable while it advertises. If not, only devices that it is paired with find
    /// it.
    public var makesDiscoverable: Bool
    /// The time between two queries to a device that has sessions, and between two inquiries; at least 1 s.
    public var interval: Duration
    /// The addresses of peers' devices that the transport reports without having discovered them.
    public var knownAddresses: [TransportAddress]
    /// How to answer devices that want to pair. Nil means not at all, which is enough: a session secures its links
    /// itself.
    public var pairing: BluetoothPairing?

    /// Creates options; each parameter sets the property of the same name.
    public init(
        adapter: String? = nil, makesDiscoverable: Bool = true, interval: Duration = .seconds(10),
        knownAddresses: [TransportAddress] = [], pairing: BluetoothPairing? = nil
    ) {
        self.adapter = adapter
        self.makesDiscoverable = makesDiscoverable
        self.interval = interval
        self.knownAddresses = knownAddresses
        self.pairing = pairing
    }

    /// The options that a spec can carry, with their help texts, for the registry.
    static let keys = [
        "adapter": "the adapter to use, such as hci1; by default the first that is switched on",
        "device": "the address of a peer's device, such as 00:11:22:33:44:55; it needs no inquiry",
        "discoverable": "yes or no: whether unpaired devices can find this one; yes by default",
        "interval": "seconds between two queries to a device, 1 to 600; 10 by default",
        "pairing": "none or just-works: the answer to a device that wants to pair; none by default",
    ]

    /// Reads the options of a spec.
    init(_ spec: TransportSpec) throws(NighError) {
        self.init()
        if let name = spec.options["adapter"] {
            guard let number = UInt16(name.dropFirst(3)), name == "hci\(number)" else {
                throw Self.invalid(
                    "adapter \"\(name)\"", "adapters are called hci0, hci1 …; `bluetoothctl list` shows them")
            }
            adapter = name
        }
        if let text = spec.options["device"] {
            let address = TransportAddress(scheme: BluetoothTransport.schemeName, value: text)
            do throws(NighError) {
                knownAddresses = [try BluetoothDestination(address).transportAddress]
            } catch {
                throw Self.invalid("device \"\(text)\"", error.advice ?? "")
            }
        }
        if let text = spec.options["discoverable"] {
            guard let isYes = ["yes": true, "no": false][text] else {
                throw Self.invalid("discoverable \"\(text)\"", "write yes or no")
            }
            makesDiscoverable = isYes
        }
        if let text = spec.options["interval"] {
            guard let seconds = Int(text), (1...600).contains(seconds) else {
                throw Self.invalid("interval \"\(text)\"", "write seconds, from 1 to 600")
            }
            interval = .seconds(seconds)
        }
        switch spec.options["pairing"] {
        case nil, "none": break
        case "just-works": pairing = .justWorks
        case let text?: throw Self.invalid("pairing \"\(text)\"", "known are: none, just-works")
        }
    }

    private static func invalid(_ what: String, _ advice: String) -> NighError {
        NighError(.configuring, .invalid(what), transport: BluetoothTransport.schemeName, advice: advice)
    }
}

/// How this machine answers a device that wants to pair at the Bluetooth level.
public struct BluetoothPairing: Sendable {
    /// A request to pair: the device, and six digits if both sides show some.
    public struct Request: Sendable {
        /// The other device's address, such as `00:11:22:33:44:55`.
        public let device: String
        /// The digits on both screens; nil if there is nothing to compare.
        public let digits: String?
    }

    /// Whether a person can compare digits on this machine. The agent states this ability to bluetoothd.
    let comparesDigits: Bool
    /// Decides about a request. It is called on the loop, and calls `answer` once, at once or later, on any thread.
    let decide: @Sendable (Request, _ answer: @escaping @Sendable (Bool) -> Void) -> Void

    /// Accepts every device without asking. It keeps nobody out; the session's own security applies on top of it.
    public static let justWorks = BluetoothPairing(comparesDigits: false) { _, answer in answer(true) }

    /// Lets a person compare six digits on both screens. `decide` is called on the session's loop with the request to
    /// show. It calls `answer` once, on any thread, when the person has decided. bluetoothd itself gives up after about
    /// half a minute.
    public static func comparison(
        _ decide: @escaping @Sendable (Request, _ answer: @escaping @Sendable (Bool) -> Void) -> Void
    ) -> BluetoothPairing {
        BluetoothPairing(comparesDigits: true, decide: decide)
    }
}
