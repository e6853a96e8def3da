// GKSession and the peer picker for Linux, with the interface of Apple's GameKit, over Nigh. It connects Linux machines
// with each other. Files that import only GameKit use Foundation as well, as on Apple's systems.

@_exported import Foundation
