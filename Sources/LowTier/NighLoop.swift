// The low tier: sessions on event loops, with every transport of this package.

@_exported import NighBluetooth
// All of Core, because a module that exports single types of another one hides their operators, such as those of
// Moment.
@_exported import NighCore
@_exported import NighMemory
import NighNATS
@_exported import NighPlugins
import NighSerial
@_exported import NighSystem
@_exported import NighTCP
@_exported import NighUV
import NighWeb

extension Session {
    /// The calls for programs that count nanoseconds, or that run several sessions on one event loop.
    @inlinable
    public var lowLevel: LowLevelSession { LowLevelSession(self) }
}

extension TransportRegistry {
    /// Every transport of this package, for programs that let a person choose by a flag:
    /// `try TransportRegistry.standard.makeAll("tcp")`. A program adds its own with `register`.
    public static let standard = TransportRegistry([
        MemoryTransport.registryEntry, TCPTransport.registryEntry, BluetoothTransport.registryEntry,
        NATSTransport.registryEntry, SerialTransport.registryEntry, WebTransport.registryEntry,
    ])

    /// The schemes of all transports here that reach other programs without being told where, separated by commas.
    public var reachingOtherPrograms: String {
        let others = [MemoryTransport.schemeName, WebTransport.schemeName]
        return entries.filter { !$0.needsOptions && !others.contains($0.scheme) }.map(\.scheme)
            .joined(separator: ",")
    }
}
