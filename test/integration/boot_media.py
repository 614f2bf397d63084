# SPDX-License-Identifier: Apache-2.0
"""The smallest things that boot: a CD, and a program for EFI firmware. Both say a line on the first serial port and rest."""

import struct

CD_SECTOR = 2048
PAGE = 4096


def _bios_program(line):
    """16-bit code at 0x7c00 that writes its text to the serial port."""
    code = (b'\xfc\x31\xc0\x8e\xd8'              # cld; xor ax, ax; mov ds, ax
            b'\xbe\x00\x00'                      # mov si, text
            b'\xba\xf8\x03'                      # mov dx, 0x3f8
            b'\xac\x84\xc0\x74\x03\xee\xeb\xf8'  # next: lodsb; test al, al; jz rest; out dx, al; jmp next
            b'\xf4\xeb\xfd')                     # rest: hlt; jmp rest
    text = struct.pack('<H', 0x7C00 + len(code))
    return (code[:6] + text + code[8:] + line.encode() + b'\r\n\0').ljust(CD_SECTOR, b'\0')


def cd(line):
    """An ISO 9660 volume with nothing in it but a boot record without emulation (El Torito)."""
    catalog_at, program_at = 19, 20
    primary = b'\x01CD001\x01\0'.ljust(CD_SECTOR, b'\0')
    boot = (b'\0CD001\x01' + b'EL TORITO SPECIFICATION'.ljust(64, b'\0') + struct.pack('<I', catalog_at)).ljust(CD_SECTOR, b'\0')
    end = b'\xffCD001\x01'.ljust(CD_SECTOR, b'\0')
    validation = b'\x01\0\0\0' + b'\0' * 24 + b'\0\0\x55\xaa'
    checksum = -sum(struct.unpack('<16H', validation)) & 0xFFFF
    validation = validation[:28] + struct.pack('<H', checksum) + validation[30:]
    entry = struct.pack('<BBHBBHI', 0x88, 0, 0, 0, 0, CD_SECTOR // 512, program_at).ljust(32, b'\0')
    catalog = (validation + entry).ljust(CD_SECTOR, b'\0')
    return b'\0' * 16 * CD_SECTOR + primary + boot + end + catalog + _bios_program(line)


def efi_program(line):
    """A PE32+ application of one section: prints with SystemTable->ConOut->OutputString."""
    code = (b'\x48\x83\xec\x28'                  # sub rsp, 40
            b'\x48\x8b\x4a\x40'                  # mov rcx, [rdx+64]   ConOut
            b'\x48\x8d\x15\x05\x00\x00\x00'      # lea rdx, [rip+5]    text
            b'\xff\x51\x08'                      # call [rcx+8]        OutputString
            b'\xeb\xfe')                         # rest: jmp rest
    section = (code + f'{line}\r\n\0'.encode('utf-16-le')).ljust(PAGE, b'\0')
    optional = struct.pack('<HBBIIIII', 0x20B, 0, 0, PAGE, 0, 0, PAGE, PAGE)            # code of a page, entry at a page
    optional += struct.pack('<QIIHHHHHHIIIIHH', 0, PAGE, 512, 0, 0, 0, 0, 0, 0, 0, 2 * PAGE, 512, 0, 10, 0)
    optional += struct.pack('<QQQQII', 0, 0, 0, 0, 0, 0)
    header = struct.pack('<HHIIIHH', 0x8664, 1, 0, 0, 0, len(optional), 0x22E)
    text = struct.pack('<8sIIIIIIHHI', b'.text', PAGE, PAGE, PAGE, 512, 0, 0, 0, 0, 0x60000020)
    dos = b'MZ'.ljust(60, b'\0') + struct.pack('<I', 64)
    return (dos + b'PE\0\0' + header + optional + text).ljust(512, b'\0') + section
