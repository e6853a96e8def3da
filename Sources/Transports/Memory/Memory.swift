import NighCore
