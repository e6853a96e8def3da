import CBluetooth
import Glibc
import NighCore

/// A device's Bluetooth address: 48 bits, written as `00:AA:01:00:00:42`.
package struct BluetoothAddress: Hashable, Comparable, Sendable, CustomStringConvertible,
    LosslessStringConvertible
{
    /// The address as a number: the first of the six bytes is the most significant.
    package let number: UInt64

    /// Creates an address from the lower 48 bits of `number`.
    package init(number: UInt64) { self.number = number & 0xFFFF_FFFF_FFFF }

    /// Parses the form of `description`, in upper or lower case; nil for anything else.
    package init?(_ description: String) {
        let parts = description.utf8.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false)
        guard parts.count == 6 else { return nil }
        var number: UInt64 = 0
        for part in parts {
            guard part.count == 2, part.allSatisfy({ $0 != UInt8(ascii: "+") && $0 != UInt8(ascii: "-") }),
                let byte = UInt64(Substring(part), radix: 16)
            else { return nil }
            number = number << 8 | byte
        }
        self.number = number
    }

    /// Six bytes in hexadecimal, separated by colons.
    package var description: String {
        stride(from: 40, through: 0, by: -8).map { shift in
            let text = String(number >> UInt64(shift) & 0xFF, radix: 16, uppercase: true)
            return text.count == 1 ? "0" + text : text
        }.joined(separator: ":")
    }

    package static func < (left: Self, right: Self) -> Bool { left.number < right.number }
}

extension BluetoothAddress {
    /// Converts an address from the kernel's form, which has the least significant byte first.
    package init(_ raw: bdaddr_t) {
        let bytes = [raw.b.5, raw.b.4, raw.b.3, raw.b.2, raw.b.1, raw.b.0]
        self.init(number: bytes.reduce(0) { $0 << 8 | UInt64($1) })
    }

    package var raw: bdaddr_t {
        func byte(_ position: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: number >> (8 * position)) }
        return bdaddr_t(b: (byte(0), byte(1), byte(2), byte(3), byte(4), byte(5)))
    }
}

/// Where a pipe can be opened: a device, and the RFCOMM channel on which the program there listens.
package struct BluetoothDestination: Hashable, Sendable, CustomStringConvertible {
    /// The channels that RFCOMM has.
    package static let channels: ClosedRange<UInt8> = 1...30

    package var device: BluetoothAddress
    /// The channel; nil if the device has to be asked for it.
    package var channel: UInt8?

    package init(_ device: BluetoothAddress, channel: UInt8?) {
        self.device = device
        self.channel = channel
    }

    /// Parses `00:AA:01:00:00:42/3`, or an address without the channel.
    package init(_ address: TransportAddress) throws(NighError) {
        guard address.scheme == BluetoothTransport.schemeName else {
            throw Self.invalid(address, "it is not a Bluetooth address")
        }
        let parts = address.value.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false)
        guard let device = BluetoothAddress(String(parts[0])) else {
            throw Self.invalid(address, "a device is written as bluetooth://00:11:22:33:44:55")
        }
        self.device = device
        guard parts.count == 2 else { return }
        // Only one spelling is accepted, so that two addresses of one place are equal.
        guard let channel = UInt8(parts[1]), Self.channels.contains(channel), "\(channel)" == parts[1] else {
            throw Self.invalid(address, "a channel is a number from 1 to 30")
        }
        self.channel = channel
    }

    private static func invalid(_ address: TransportAddress, _ advice: String) -> NighError {
        NighError(
            .connecting, .invalid("address \(address)"), transport: BluetoothTransport.schemeName,
            advice: advice)
    }

    package var transportAddress: TransportAddress {
        TransportAddress(scheme: BluetoothTransport.schemeName, value: description)
    }

    package var description: String { channel.map { "\(device)/\($0)" } ?? "\(device)" }
}
